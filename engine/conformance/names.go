package conformance

import (
	"regexp"
	"slices"
	"strings"
)

// generated is a name that a controller has made up: an owner's name and five characters
// of the alphabet of k8s.io/apimachinery's rand.String.
var generated = regexp.MustCompile(`\b[a-z0-9][a-z0-9-]*-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// translate replaces the names of the recorded cluster's Pods in a command line by those
// of this one: for each recorded name a Pod of the same owner that stands for no other.
func (p *player) translate(line string) string {
	return generated.ReplaceAllStringFunc(line, func(was string) string {
		if now, ok := p.names[was]; ok {
			return now
		}
		now := p.standIn(was)
		if now == "" {
			return was
		}
		p.names[was] = now
		return now
	})
}

func (p *player) standIn(was string) string {
	res := p.session.RunArgs(p.ctx, []string{"get", "pods", "-o", "name"}, nil)
	for _, line := range strings.Fields(res.Stdout) {
		name := strings.TrimPrefix(line, "pod/")
		if owner(name) == owner(was) && !slices.Contains(values(p.names), name) {
			return name
		}
	}
	return ""
}

// owner is a generated name without its suffix.
func owner(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		return name[:i]
	}
	return name
}

func values(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
