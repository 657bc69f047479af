package kubectl

import "strings"

// Changes reports whether a command line asks for a change, or only looks.
func Changes(line string) bool {
	if strings.Contains(line, "--dry-run=") && !strings.Contains(line, "--dry-run=none") {
		return false
	}
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "kubectl" || w == "k":
		case w == "-n" || w == "--namespace" || w == "--as" || w == "--context":
			i++ // its value
		case strings.HasPrefix(w, "-"):
		case w == "rollout":
			return i+1 < len(words) && words[i+1] != "status" && words[i+1] != "history"
		default:
			return verbs[w]
		}
	}
	return false
}

// verbs are those that change something.
var verbs = map[string]bool{
	"run": true, "create": true, "apply": true, "delete": true, "expose": true, "scale": true, "edit": true, "patch": true,
	"replace": true, "label": true, "annotate": true, "set": true, "taint": true, "cordon": true, "uncordon": true,
	"drain": true, "autoscale": true,
}
