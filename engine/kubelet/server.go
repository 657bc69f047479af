package kubelet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/cri"
	"podwalk/engine/network"
)

// serving is a call to the kubelet's server on port 10250 that waits for the runtime.
type serving struct {
	Call uint64 // as the network numbers it
	What string // "log" or "exec"
	ID   string // of the container
	Log  logOptions
}

// logOptions are the query parameters of containerLogs.
type logOptions struct {
	Previous, Timestamps bool
	Since                time.Time
	Tail, Limit          int64 // -1 for all
}

// answer is what the server says to a call.
type answer struct {
	Code int
	Body []byte
}

func refusal(code int, format string, args ...any) *answer {
	return &answer{code, []byte(fmt.Sprintf(format, args...))}
}

// serveCall takes a call that reached the kubelet's port: containerLogs and exec. A nil
// answer means that the runtime was asked, and that the answer comes later.
func (kl *Kubelet) serveCall(id uint64, c network.Call) *answer {
	u, err := url.Parse(c.Path)
	if err != nil {
		return refusal(http.StatusBadRequest, "%v", err)
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case u.Path == "/healthz":
		return &answer{http.StatusOK, []byte("ok")}
	case len(parts) == 4 && parts[0] == "containerLogs":
		return kl.serveLogs(id, parts[1], parts[2], parts[3], u.Query())
	case len(parts) == 4 && (parts[0] == "exec" || parts[0] == "run"):
		return kl.serveExec(id, parts[1], parts[2], parts[3], u.Query())
	case len(parts) == 4 && parts[0] == "attach":
		return kl.serveAttach(id, parts[1], parts[2], parts[3])
	}
	return refusal(http.StatusNotFound, "404 page not found")
}

func (kl *Kubelet) workerOf(namespace, name string) *worker {
	for _, w := range kl.sorted() {
		if w.Pod.Namespace == namespace && w.Pod.Name == name {
			return w
		}
	}
	return nil
}

func (kl *Kubelet) serveLogs(id uint64, namespace, name, container string, q url.Values) *answer {
	w := kl.workerOf(namespace, name)
	if w == nil {
		return refusal(http.StatusNotFound, "pod %q does not exist", name)
	}
	if spec, _ := w.spec(container); spec == nil {
		return refusal(http.StatusNotFound, "container %q not found in pod %q", container, name)
	}
	o, err := kl.logOptions(q)
	if err != nil {
		return refusal(http.StatusUnprocessableEntity, `{"message": "Invalid request."}`)
	}
	cid, err := logContainer(name, w.Status, container, o.Previous)
	if err != nil {
		return refusal(http.StatusBadRequest, "%v", err)
	}
	kl.serveFromRuntime(serving{Call: id, What: "log", ID: cid, Log: o}, cri.ContainerLog{ContainerID: cid})
	return nil
}

func (kl *Kubelet) logOptions(q url.Values) (logOptions, error) {
	o := logOptions{Previous: q.Get("previous") == "true", Timestamps: q.Get("timestamps") == "true", Tail: -1, Limit: -1}
	for name, to := range map[string]*int64{"tailLines": &o.Tail, "limitBytes": &o.Limit} {
		if v := q.Get(name); v != "" && v != "all" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return o, err
			}
			*to = n
		}
	}
	if v := q.Get("sinceSeconds"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return o, err
		}
		o.Since = kl.k.Now().Wall().Add(-seconds(n))
	}
	if v := q.Get("sinceTime"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return o, err
		}
		o.Since = t
	}
	return o, nil
}

// logContainer is upstream's validateContainerLogStatus: whose log is meant.
func logContainer(pod string, s *corev1.PodStatus, name string, previous bool) (string, error) {
	if s == nil {
		s = &corev1.PodStatus{}
	}
	st, found := podutil.GetContainerStatus(s.ContainerStatuses, name)
	if !found {
		st, found = podutil.GetContainerStatus(s.InitContainerStatuses, name)
	}
	if !found {
		return "", fmt.Errorf("container %q in pod %q is not available", name, pod)
	}
	last := st.LastTerminationState.Terminated
	id := ""
	switch {
	case previous:
		if last == nil || last.ContainerID == "" {
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", name, pod)
		}
		id = last.ContainerID
	case st.State.Running != nil:
		id = st.ContainerID
	case st.State.Terminated != nil:
		id = st.State.Terminated.ContainerID
		if id == "" && last != nil {
			id = last.ContainerID
		}
		if id == "" {
			return "", fmt.Errorf("container %q in pod %q is terminated", name, pod)
		}
	case last != nil:
		if last.ContainerID == "" {
			return "", fmt.Errorf("container %q in pod %q is terminated", name, pod)
		}
		id = last.ContainerID
	case st.State.Waiting != nil:
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %v", name, pod, waitingWords(st.State.Waiting.Reason))
	default:
		return "", fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", name, pod)
	}
	return strings.TrimPrefix(id, "containerd://"), nil
}

func waitingWords(reason string) string {
	switch reason {
	case errImagePull:
		return "image can't be pulled"
	case imagePullBackOff:
		return "trying and failing to pull image"
	}
	return reason
}

func (kl *Kubelet) serveExec(id uint64, namespace, name, container string, q url.Values) *answer {
	w := kl.workerOf(namespace, name)
	if w == nil {
		return refusal(http.StatusNotFound, "pod does not exist")
	}
	c := w.Containers[container]
	if c == nil || c.Current.State != stateRunning {
		return refusal(http.StatusInternalServerError, "container not found (%q)", container)
	}
	kl.serveFromRuntime(serving{Call: id, What: "exec", ID: c.Current.ID}, cri.ExecSync{ContainerID: c.Current.ID, Command: q["command"]})
	return nil
}

// serveAttach has no stream to give: it shows what the container has written so far.
func (kl *Kubelet) serveAttach(id uint64, namespace, name, container string) *answer {
	w := kl.workerOf(namespace, name)
	if w == nil {
		return refusal(http.StatusNotFound, "pod does not exist")
	}
	c := w.Containers[container]
	if c == nil || c.Current.State != stateRunning {
		return refusal(http.StatusInternalServerError, "container %s not found in pod %s", container, podName(w.Pod))
	}
	kl.serveFromRuntime(serving{Call: id, What: "attach", ID: c.Current.ID, Log: logOptions{Tail: -1, Limit: -1}}, cri.ContainerLog{ContainerID: c.Current.ID})
	return nil
}

func (kl *Kubelet) serveFromRuntime(s serving, req any) {
	kl.Serving[kl.Seq+1] = s
	kl.ask(asked{What: askServe}, req)
}

// servedByRuntime ends a call that waited for the runtime.
func (kl *Kubelet) servedByRuntime(seq uint64, r cri.Response) {
	s, ok := kl.Serving[seq]
	if !ok {
		return
	}
	delete(kl.Serving, seq)
	switch {
	case s.What == "log" && r.Err != "":
		kl.reply(s.Call, answer{http.StatusOK, []byte("unable to retrieve container logs for containerd://" + s.ID)})
	case s.What == "log":
		kl.reply(s.Call, answer{http.StatusOK, logText(r.Log, s.Log)})
	case r.Err == socketMissing || r.Err == socketBroke:
		kl.reply(s.Call, answer{http.StatusInternalServerError, []byte(r.Err)})
	case s.What == "attach":
		body, _ := json.Marshal(wire.ExecResult{Stdout: logText(r.Log, s.Log)})
		kl.reply(s.Call, answer{http.StatusSwitchingProtocols, body})
	default:
		body, _ := json.Marshal(wire.ExecResult{Stdout: r.Stdout, Stderr: r.Stderr, Exit: r.ExitCode, Error: plainError(r.Err)})
		kl.reply(s.Call, answer{http.StatusSwitchingProtocols, body})
	}
}

// logText prints a log as the options want it.
func logText(lines []cri.LogLine, o logOptions) []byte {
	var kept []cri.LogLine
	for _, l := range lines {
		if !l.At.Wall().Before(o.Since) {
			kept = append(kept, l)
		}
	}
	if o.Tail >= 0 && int64(len(kept)) > o.Tail {
		kept = kept[int64(len(kept))-o.Tail:]
	}
	var b strings.Builder
	for _, l := range kept {
		if o.Timestamps {
			b.WriteString(l.At.Wall().Format("2006-01-02T15:04:05.000000000Z07:00") + " ")
		}
		b.WriteString(l.Text + "\n")
	}
	out := b.String()
	if o.Limit >= 0 && int64(len(out)) > o.Limit {
		out = out[:o.Limit]
	}
	return []byte(out)
}
