package kubectl

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// unserved are the commands whose streams this API server does not have.
var unserved = []string{"proxy", "port-forward", "attach", "cp"}

// streams says why a command is refused that wants a stream which nobody serves, "" where
// it wants none.
func (l line) streams() string {
	if slices.Contains(unserved, l.verb) {
		return "this simulation has no kubectl " + l.verb + ": no stream leads out of the cluster. Look from inside: kubectl exec POD -- wget -qO- ADDRESS"
	}
	return ""
}

// reachesOut says why a command is refused that would leave the simulation: for the real
// network, or for another cluster, such as one that runs on this machine. "" where it may
// run.
func (s *Session) reachesOut(l line, args []string) string {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	const elsewhere = "kubectl is connected to the simulated cluster here; "
	for _, name := range []string{"--server", "-s"} {
		server, given := flag(args, name)
		ofKubectl := name != "-s" || l.at < 0 || slices.Index(args, "-s") < l.at // run -s is the container's
		if given && ofKubectl && !s.ours(server) {
			return elsewhere + name + " would lead elsewhere"
		}
	}
	if file, given := flag(args, "--kubeconfig"); given {
		if !filepath.IsAbs(file) {
			file = filepath.Join(s.Dir(), file)
		}
		c, err := clientcmd.LoadFromFile(file)
		if err == nil { // else kubectl says what is wrong with it
			for _, cluster := range c.Clusters {
				if !s.ours(cluster.Server) || cluster.ProxyURL != "" {
					return elsewhere + "--kubeconfig names another one"
				}
			}
		}
	}
	for _, a := range args {
		for _, scheme := range []string{"http://", "https://"} {
			if strings.HasPrefix(a, scheme) && !s.ours(a) || strings.HasPrefix(a, "-f"+scheme) || strings.HasPrefix(a, "--filename="+scheme) || strings.HasPrefix(a, "-f="+scheme) || strings.HasPrefix(a, "--kustomize="+scheme) || strings.HasPrefix(a, "-k"+scheme) {
				return "the simulation does not reach the network: save the file here and name it with -f"
			}
		}
	}
	return ""
}

// ours reports whether a server's address is this session's, or one of this machine at
// which nobody answers: that may be tried.
func (s *Session) ours(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		u = &url.URL{Host: server}
	}
	if u.Host == s.address {
		return true
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() || u.Port() == "" {
		return false
	}
	c, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
