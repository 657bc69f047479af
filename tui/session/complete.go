package session

import (
	"sort"
	"strings"

	"podwalk/engine/kube"
	"podwalk/tui/frame"
)

var verbs = []string{
	"annotate", "api-resources", "apply", "auth", "config", "cordon", "create", "delete", "describe", "drain", "edit", "events", "exec", "explain",
	"expose", "get", "label", "logs", "patch", "rollout", "run", "scale", "set", "taint", "top", "uncordon", "version", "wait",
}

var shortNames = map[string]string{
	"po": "pods", "no": "nodes", "svc": "services", "deploy": "deployments", "rs": "replicasets", "ns": "namespaces",
	"cm": "configmaps", "sa": "serviceaccounts", "ev": "events", "ep": "endpoints", "ds": "daemonsets", "sts": "statefulsets",
}

// complete says what the last word of a command line may become: a verb, a kind, the
// name of an object that exists.
func complete(v frame.View, line string) []string {
	words := strings.Fields(line)
	if line == "" || strings.HasSuffix(line, " ") {
		words = append(words, "")
	}
	if len(words) > 0 && (words[0] == "kubectl" || words[0] == "k") && len(words) > 1 {
		words = words[1:]
	} else if len(words) == 1 {
		return matching(append([]string{"kubectl", "k"}, verbs...), words[0])
	}
	last := words[len(words)-1]
	if len(words) == 1 {
		return matching(verbs, last)
	}
	verb := words[0]
	var plain []string // arguments that are no flags
	for _, w := range words[1 : len(words)-1] {
		if !strings.HasPrefix(w, "-") {
			plain = append(plain, w)
		}
	}
	switch {
	case strings.HasPrefix(last, "-"):
		return matching([]string{"--all-namespaces", "--dry-run=client", "--image=", "--namespace=", "--output=yaml", "--replicas=", "--selector=", "--watch", "-o", "-n", "-A"}, last)
	case verb == "logs" || verb == "exec":
		return matching(names(v, "pods"), last)
	case len(plain) == 0 && verb != "run":
		if m := matching(resources(), last); len(m) > 0 {
			return m
		}
		return matching(allResources(), last)
	case len(plain) == 1 && verb != "create":
		return matching(names(v, plain[0]), last)
	}
	return nil
}

func matching(all []string, prefix string) []string {
	var out []string
	for _, s := range all {
		if strings.HasPrefix(s, prefix) {
			out = append(out, s)
		}
	}
	sort.Strings(out)
	return out
}

// common kinds come first: "po" is completed to pods, not to the longer choice.
var common = []string{
	"pods", "nodes", "services", "deployments", "replicasets", "events", "namespaces", "configmaps", "secrets", "endpointslices",
}

func resources() []string {
	return common
}

// allResources lists the other kinds too, for a word that no common one begins with.
func allResources() []string {
	var out []string
	for _, k := range kube.Kinds() {
		out = append(out, k.Resource.Resource)
	}
	return out
}

func names(v frame.View, resource string) []string {
	resource = strings.ToLower(resource)
	if long, ok := shortNames[resource]; ok {
		resource = long
	}
	for _, k := range kube.Kinds() {
		if k.Resource.Resource != resource && !strings.EqualFold(k.Kind.Kind, resource) {
			continue
		}
		var out []string
		for _, o := range v.List(k.Resource, "") {
			if o.GetNamespace() != "kube-system" {
				out = append(out, o.GetName())
			}
		}
		return out
	}
	return nil
}
