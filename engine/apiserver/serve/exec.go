package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/apiserver/wire"
)

// The channels of a remote command. Upstream: apimachinery/pkg/util/remotecommand.
const (
	channelStdout = 1
	channelStderr = 2
	channelError  = 3
)

// remoteProtocol is the newest protocol of remote commands; in older ones a client cannot
// close its input.
const remoteProtocol = "v5.channel.k8s.io"

// nonZeroExit is the reason of a command that ran and ended badly.
const nonZeroExit metav1.StatusReason = "NonZeroExitCode"

// exec runs a command in a container: the gates and the kubelet answer first, then the
// connection becomes a WebSocket that carries what the command printed and how it ended.
func (h *Handler) exec(w http.ResponseWriter, r *http.Request, req wire.Request) {
	a := h.do(r.Context(), req)
	var result wire.ExecResult
	if a.Err() != nil || a.Code != http.StatusSwitchingProtocols || json.Unmarshal(a.Body, &result) != nil {
		h.write(w, r, req, a)
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		writeStatus(w, errors.NewBadRequest("Upgrade request required").Status(), 0, false)
		return
	}
	up := websocket.Upgrader{Subprotocols: []string{remoteProtocol, "v4.channel.k8s.io"}, CheckOrigin: func(*http.Request) bool { return true }}
	c, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	defer c.Close()
	send := func(channel byte, data []byte) {
		_ = c.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, data...))
	}
	if len(result.Stdout) > 0 {
		send(channelStdout, result.Stdout)
	}
	if len(result.Stderr) > 0 {
		send(channelStderr, result.Stderr)
	}
	status, _ := json.Marshal(exitStatus(result))
	send(channelError, status)
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
}

// exitStatus tells how a command ended. Upstream: kubelet/pkg/cri/streaming/remotecommand.
func exitStatus(r wire.ExecResult) metav1.Status {
	switch {
	case r.Error != "":
		s := errors.NewInternalError(fmt.Errorf("error executing command in container: %s", r.Error)).Status()
		return s
	case r.Exit != 0:
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: nonZeroExit,
			Message: fmt.Sprintf("command terminated with non-zero exit code: error executing command: exit status %d", r.Exit),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: fmt.Sprint(r.Exit)}}},
		}
	}
	return metav1.Status{Status: metav1.StatusSuccess}
}
