package conformance

import (
	"regexp"
	"strings"
)

// rule replaces what a cluster makes up.
type rule struct {
	find *regexp.Regexp
	with string
}

func rules(pairs ...string) []rule {
	var out []rule
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, rule{regexp.MustCompile(pairs[i]), pairs[i+1]})
	}
	return out
}

// suffix is the alphabet of generated names.
const suffix = `[bcdfghjklmnpqrstvwxz2456789]`

var madeUp = rules(
	`(?m)^[IWEF]\d{4} [\d:.]+ +\d+ (\S+?):\d+\]`, `KLOG $1]`,
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, `UID`,
	`(resourceVersion: )"\d+"`, `$1"RV"`,
	`("resourceVersion": ?)"\d+"`, `$1"RV"`,
	`(?m)(Resource Version: +)\d+`, `${1}RV`,
	`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)`, `TIME`,
	`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+]0000`, `TIME`,
	`kube-api-access-`+suffix+`{5}`, `kube-api-access-SUFFIX`,
	`\b([a-z0-9][a-z0-9.-]*)-`+suffix+`{8,10}-`+suffix+`{5}\b`, `$1-HASH-SUFFIX`,
	`\b([a-z0-9][a-z0-9.-]*)-`+suffix+`{8,10}\b`, `$1-HASH`,
	`(pod-template-hash[:=] ?)"?`+suffix+`{5,10}"?`, `${1}HASH`,
	`\b10\.(244|96|97|98|99|1\d\d)\.\d+\.\d+\b`, `IP`,
	`containerd://[0-9a-f]{64}`, `containerd://ID`,
	`sha256:[0-9a-f]{64}`, `sha256:ID`,
	`(sandbox|exec) "[0-9a-f]{64}"`, `$1 "ID"`,
	// nginx's own clock and its machine.
	`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (\[[a-z]+\])`, `TIME $1`,
	`127\.0\.0\.1:\d+`, `SERVER`,
	`in [\dhmsµ.]+ \([\dhmsµ.]+ including waiting\)`, `in DURATION (DURATION including waiting)`,
	// What the registry holds under a name is the scenario's data: the recorded nginx was a
	// stand-in of 6 MB.
	`Image size: \d+ bytes`, `Image size: SIZE bytes`,
	// The recorded node asked a mirror for every registry's images, by the registry's name.
	`http://SERVER/v2/([^\s"?]+)\?ns=([a-z0-9.-]+)`, `https://$2/v2/$1`,
	// It had cgroups of version 1, where "no limit" is a number.
	`resources:\n +limits:\n +memory: 9007199254740988Ki`, `resources: {}`,
	`\([\ddhms]+ ago\)`, `(AGE ago)`,
	`\(x\d+ over [\ddhms]+\)`, `(COUNT)`,
	`real\t.*\n|user\t.*\n|sys\t.*\n`, ``,
)

// nodes are those among which a choice of equally good ones falls.
var nodes = rules(
	`\bnode0[123]\b`, `NODE`,
	`\b172\.30\.0\.1[123]\b`, `NODEIP`,
	`\bzone-[ab]\b`, `ZONE`,
)

var (
	aged  = regexp.MustCompile(`(?m)^.*\b(AGE|Age|LAST SEEN|DURATION)\b.*$`)
	age   = regexp.MustCompile(`(^|[ \t])(\d+[dhms])+($|[ \t])`)
	gap   = regexp.MustCompile(`(\S)(?: {2,}|\t+)`)
	ended = regexp.MustCompile(`(?m)[ \t]+$`)
)

// Normalise replaces what a cluster makes up, and the widths that follow from it.
func Normalise(s string) string {
	s = ages(s)
	for _, r := range madeUp {
		s = r.find.ReplaceAllString(s, r.with)
	}
	s = gap.ReplaceAllString(s, "$1  ")
	s = ended.ReplaceAllString(s, "")
	return strings.TrimRight(s, "\n") // the archive ends every file with a newline
}

// anyNode forgets which of the equally good nodes was taken.
func anyNode(s string) string {
	for _, r := range nodes {
		s = r.find.ReplaceAllString(s, r.with)
	}
	return s
}

// ages replaces the ages in tables: below a heading with such a column, down to the next
// empty line. Elsewhere "5m" may be five thousandths of a CPU.
func ages(s string) string {
	lines := strings.SplitAfter(s, "\n")
	in := false
	for i, l := range lines {
		switch {
		case aged.MatchString(strings.TrimSuffix(l, "\n")):
			in = true
			continue
		case strings.TrimSpace(l) == "":
			in = false
		}
		if in {
			l = strings.TrimSuffix(l, "\n")
			for range 4 { // matches share their separators
				l = age.ReplaceAllString(l, "${1}AGE${3}")
			}
			lines[i] = l + "\n"
		}
	}
	return strings.Join(lines, "")
}
