package apiserver

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/kube"
	"podwalk/engine/network"
	"podwalk/engine/trace"
)

// connectTag brings the kubelet's answer back to its flight.
type connectTag struct{ Flight uint64 }

// connect hands logs, exec, attach and port-forward to the kubelet of the Pod's node: the
// API server only checks and passes on. Upstream: registry/core/pod/strategy.go.
//
// One question and one answer: a log comes as a whole, a command's output when it ends.
func (s *Server) connect(f *flight) error {
	r := &f.Req
	if r.Resource != kube.Pods {
		return notFoundPath(r)
	}
	if s.etcd.Stopped() {
		return s.park(f, s.cfg.ReadTimeout)
	}
	obj, ok := s.Get(kube.Pods, r.Namespace, r.Name)
	if !ok {
		return apierrors.NewNotFound(kube.Pods.GroupResource(), r.Name)
	}
	pod := obj.(*corev1.Pod)
	container := ""
	if r.Subresource != "portforward" {
		var err error
		if container, err = containerOf(pod, r.Options.Params["container"]); err != nil {
			return err
		}
	}
	if pod.Spec.NodeName == "" {
		if r.Subresource == "log" { // nothing has been said yet
			s.text(f, 200, []byte{})
			return errDone
		}
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	host, err := s.kubeletOf(pod.Spec.NodeName)
	if err != nil {
		return err
	}
	call := network.Call{
		Tag: connectTag{f.ID}, From: hostOf(s.cfg.Address), To: host, Protocol: network.HTTPS, Method: "GET",
		Path: kubeletPath(r.Subresource, pod, container, r.Options.Params),
	}
	if r.Subresource != "log" {
		call.Method = "POST"
	}
	s.hop(f, trace.Hop{Verb: call.Method, Message: "https://" + call.To + call.Path})
	s.net.Do(self, call)
	return errParked
}

// containerOf is upstream's validateContainer.
func containerOf(pod *corev1.Pod, name string) (string, error) {
	var all []string
	for _, c := range pod.Spec.InitContainers {
		all = append(all, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		all = append(all, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, c.Name)
	}
	if name == "" {
		if len(pod.Spec.Containers) == 1 {
			return pod.Spec.Containers[0].Name, nil
		}
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s", pod.Name, all))
	}
	for _, c := range all {
		if c == name {
			return name, nil
		}
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
}

// kubeletOf returns the address of a node's kubelet.
func (s *Server) kubeletOf(name string) (string, error) {
	obj, ok := s.Get(kube.Nodes, "", name)
	if !ok {
		return "", apierrors.NewNotFound(kube.Nodes.GroupResource(), name)
	}
	node := obj.(*corev1.Node)
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port == 0 {
		port = 10250
	}
	for _, want := range []corev1.NodeAddressType{corev1.NodeHostName, corev1.NodeInternalIP} {
		for _, a := range node.Status.Addresses {
			if a.Type == want && strings.Trim(a.Address, "0123456789.") == "" {
				return fmt.Sprintf("%s:%d", a.Address, port), nil
			}
		}
	}
	return "", fmt.Errorf("no preferred addresses found; known addresses: %v", node.Status.Addresses)
}

func hostOf(address string) string {
	host, _, _ := strings.Cut(address, ":")
	return host
}

// kubeletParams are what the kubelet understands of each connect's parameters, by the
// name that the API has for them.
var kubeletParams = map[string]map[string]string{
	"log": {
		"follow": "follow", "previous": "previous", "timestamps": "timestamps", "sinceSeconds": "sinceSeconds",
		"sinceTime": "sinceTime", "tailLines": "tailLines", "limitBytes": "limitBytes",
	},
	"exec":        {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty", "command": "command"},
	"attach":      {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"},
	"portforward": {"ports": "port"},
}

func kubeletPath(sub string, pod *corev1.Pod, container string, params map[string]string) string {
	q := url.Values{}
	for from, to := range kubeletParams[sub] {
		v, ok := params[from]
		if !ok || v == "false" {
			continue
		}
		for _, word := range strings.Split(v, "\x00") { // the words of a command
			if word == "true" && sub != "log" && from != "command" {
				word = "1"
			}
			q.Add(to, word)
		}
	}
	verb := map[string]string{"log": "containerLogs", "portforward": "portForward"}[sub]
	if verb == "" {
		verb = sub
	}
	path := fmt.Sprintf("/%s/%s/%s", verb, pod.Namespace, pod.Name)
	if container != "" {
		path += "/" + container
	}
	if enc := q.Encode(); enc != "" {
		path += "?" + enc
	}
	return path
}

// connected passes the kubelet's answer on.
func (s *Server) connected(res network.Result) {
	tag, ok := res.Tag.(connectTag)
	f := s.flights[tag.Flight]
	if !ok || f == nil {
		return
	}
	switch {
	case res.Err != "" && f.Req.Subresource == "log":
		s.refuse(f, fmt.Errorf("Get %q: %s", "https://"+res.Call.To+res.Call.Path, res.Err))
	case res.Err != "":
		s.refuse(f, errors.New("error dialing backend: "+res.Err))
	case f.Req.Subresource != "log" && (res.Code == 101 || res.Code == 200):
		s.text(f, 101, res.Body) // the connection now carries what the two ends say
	case res.Code >= 200 && res.Code <= 206:
		s.text(f, 200, res.Body)
	case res.Code == 400:
		s.refuse(f, apierrors.NewBadRequest(string(res.Body)))
	case res.Code == 500 && f.Req.Subresource != "log": // the client shows what the kubelet said, as it is
		s.refuse(f, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError, Message: string(res.Body),
		}})
	case res.Code == 500:
		s.refuse(f, apierrors.NewInternalError(errors.New(string(res.Body))))
	default:
		s.refuse(f, apierrors.NewGenericServerResponse(res.Code, "", kube.Pods.GroupResource(), f.Req.Name, string(res.Body), 0, false))
	}
}

// text ends a flight with an answer that is no object.
func (s *Server) text(f *flight, code int, body []byte) {
	a := answerTo(&f.Req)
	a.Code, a.Body, a.Warnings = code, body, f.Warnings
	s.finish(f, a)
}
