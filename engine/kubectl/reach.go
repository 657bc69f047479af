package kubectl

import (
	"slices"
	"strings"
)

// unserved are the commands whose streams this API server does not have.
var unserved = []string{"proxy", "port-forward", "attach", "cp"}

// reachesOut says why a command is refused that would leave the simulation: for the real
// network, for another cluster, or for a stream that nobody serves. "" where it may run.
func (l line) reachesOut(args []string) string {
	if slices.Contains(unserved, l.verb) {
		return "this simulation has no kubectl " + l.verb + ": no stream leads out of the cluster. Look from inside: kubectl exec POD -- wget -qO- ADDRESS"
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for _, name := range []string{"--server", "-s", "--kubeconfig", "--proxy-url"} {
		if _, given := flag(args, name); given && (name != "-s" || l.at < 0 || slices.Index(args, "-s") < l.at) {
			return "kubectl is connected to the simulated cluster here; " + name + " would lead elsewhere"
		}
	}
	for _, a := range args {
		for _, scheme := range []string{"http://", "https://"} {
			if strings.HasPrefix(a, scheme) || strings.HasPrefix(a, "-f"+scheme) || strings.HasPrefix(a, "--filename="+scheme) || strings.HasPrefix(a, "-f="+scheme) || strings.HasPrefix(a, "--kustomize="+scheme) || strings.HasPrefix(a, "-k"+scheme) {
				return "the simulation does not reach the network: save the file here and name it with -f"
			}
		}
	}
	return ""
}
