package kubelet

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podwalk/engine/network"
)

// resolvePort is upstream's probe.ResolveContainerPort.
func resolvePort(p intstr.IntOrString, c *corev1.Container) (int, error) {
	port := p.IntValue()
	if p.Type == intstr.String {
		found := false
		for _, cp := range c.Ports {
			if cp.Name == p.StrVal {
				port, found = int(cp.ContainerPort), true
			}
		}
		if !found {
			n, err := strconv.Atoi(p.StrVal)
			if err != nil {
				return 0, fmt.Errorf("port %q not found", p.StrVal)
			}
			port = n
		}
	}
	if port < 1 || port > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", port)
	}
	return port, nil
}

func httpCall(tag any, get *corev1.HTTPGetAction, ip string, port int, from, agent string, timeout time.Duration) network.Call {
	c := network.Call{
		Tag: tag, From: from, To: net.JoinHostPort(cmp.Or(get.Host, ip), strconv.Itoa(port)), Protocol: network.HTTP,
		Method: "GET", Path: cmp.Or(get.Path, "/"), Timeout: timeout, Headers: map[string]string{"User-Agent": agent, "Accept": "*/*"},
	}
	if !strings.HasPrefix(c.Path, "/") {
		c.Path = "/" + c.Path
	}
	if get.Scheme == corev1.URISchemeHTTPS {
		c.Protocol = network.HTTPS
	}
	for _, h := range get.HTTPHeaders {
		if strings.EqualFold(h.Name, "Host") {
			c.Host = h.Value
		} else {
			c.Headers[h.Name] = h.Value
		}
	}
	return c
}

// reached has the answer to a probe or a hook that went over the network.
func (kl *Kubelet) reached(r network.Result) {
	switch t := r.Tag.(type) {
	case hookTag:
		kl.httpHookAnswered(t, r)
	case probeTag:
		w := kl.Workers[t.UID]
		if w == nil {
			return
		}
		if st := w.Probes[t.Key]; st == nil || st.Asking != t.Try {
			return
		}
		ok, output := judge(r)
		kl.probed(w, t.Key, ok, output)
	}
}

func (kl *Kubelet) httpHookAnswered(t hookTag, r network.Result) {
	w := kl.Workers[t.UID]
	if w == nil || t.Seq == 0 && w.Pass != t.Pass {
		return
	}
	failed := "" // any answer will do, whatever its code
	if r.Err != "" {
		err := r.Err
		if r.Call.To != "" {
			err = fmt.Sprintf("Get %q: %s", urlOf(r.Call), err)
		}
		failed = fmt.Sprintf("HTTP lifecycle hook (%s) for Container %q in Pod %q failed - error: %s", r.Call.Path, t.Container, podName(w.Pod), err)
	}
	kl.hookEnded(w, t.Container, t.Seq, failed)
}

func urlOf(c network.Call) string {
	u, err := url.Parse(c.Path)
	if err != nil {
		u = &url.URL{Path: c.Path}
	}
	u.Scheme, u.Host = string(c.Protocol), c.To
	return u.String()
}

// judge is what upstream's http, tcp and grpc probers say to an answer.
func judge(r network.Result) (ok bool, output string) {
	switch r.Call.Protocol {
	case network.TCP:
		return r.Err == "", tcpError(r)
	case network.GRPC:
		switch {
		case r.Err != "":
			return false, fmt.Sprintf("timeout: failed to connect service %q within %v: context deadline exceeded", r.Call.To, r.Call.Timeout)
		case r.Code != 0 && r.Code != 200:
			return false, fmt.Sprintf("service unhealthy (responded with %q)", cmp.Or(string(r.Body), "NOT_SERVING"))
		}
		return true, ""
	}
	if r.Err != "" {
		text := r.Err
		if text == "context deadline exceeded" {
			text += " (Client.Timeout exceeded while awaiting headers)"
		}
		return false, fmt.Sprintf("Get %q: %s", urlOf(r.Call), text)
	}
	if r.Code >= 200 && r.Code < 400 {
		return true, string(r.Body)
	}
	return false, fmt.Sprintf("HTTP probe failed with statuscode: %d", r.Code)
}

func tcpError(r network.Result) string {
	if r.Err == "context deadline exceeded" {
		return "dial tcp " + r.Call.To + ": i/o timeout"
	}
	return r.Err
}
