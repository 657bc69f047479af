// Package kubectl runs the real kubectl against a simulated cluster: podwalk re-executes
// itself, and the child is k8s.io/kubectl with nothing changed but its version and its
// connection. A Session is one learner's workplace: a listener with its own certificate
// authority, a kubeconfig with contexts and users, a home directory, a history.
//
// In one process it cannot be had safely: kubectl ends the process, writes to the real
// stderr, and a watch blocks until somebody interrupts it.
//
// kubectl lives on wall time. A child that waits makes virtual time pass (package
// apiserver/serve), and its --timeout is known from the command line, so a wait for 60
// simulated seconds takes as long as the simulation needs for them.
//
// Left out: plugins (nothing outside of podwalk is ever run), exec credential helpers,
// and interactive editors other than the one that the caller names.
package kubectl

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	_ "unsafe" // for the version below

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"podwalk/engine/apiserver/serve"
	"podwalk/engine/kube"
)

// childEnv marks a process as a kubectl child; its value is the child's id.
const childEnv = "PODWALK_KUBECTL_CHILD"

// kubectl's builds set these with the linker. `go run` cannot, so they are set at run time.
var (
	//go:linkname cliVersion k8s.io/component-base/version.gitVersion
	cliVersion string
	//go:linkname agentVersion k8s.io/client-go/pkg/version.gitVersion
	agentVersion string
	//go:linkname agentCommit k8s.io/client-go/pkg/version.gitCommit
	agentCommit string
)

// ChildMain is kubectl, in a process that was started as one; it does not return then. In
// every other process it does nothing. main calls it before anything else.
func ChildMain() {
	id, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	_ = os.Unsetenv(childEnv)
	cliVersion, agentVersion, agentCommit = kube.Version, kube.Version, "podwalk"
	_ = version.SetDynamicVersion(kube.Version)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().
		WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWarningPrinter(streams).
		WithWrapConfigFn(func(c *rest.Config) *rest.Config {
			c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return transport{rt, id} })
			return c
		})
	root := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		Arguments: os.Args, ConfigFlags: flags, IOStreams: streams,
	})
	if err := cli.RunNoErrOutput(root); err != nil {
		util.CheckErr(err)
	}
	os.Exit(0)
}

// transport marks requests, and turns the answer that stands for "nobody listens" into
// the error of a dial that failed.
type transport struct {
	next http.RoundTripper
	id   string
}

// WrappedRoundTripper lets client-go find the transport below.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(serve.ChildHeader, t.id)
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text := resp.Header.Get(serve.TransportHeader)
	if text == "" {
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, dialError(r.URL.Host, text)
}

func dialError(host, text string) error {
	var cause error
	switch {
	case strings.Contains(text, "connection refused"):
		cause = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	case strings.Contains(text, "timeout"):
		cause = os.ErrDeadlineExceeded
	default:
		return errors.New(text)
	}
	addr, err := net.ResolveTCPAddr("tcp", host)
	if err != nil {
		return errors.New(text)
	}
	return &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: cause}
}
