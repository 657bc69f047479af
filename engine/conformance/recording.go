// Package conformance replays recordings of a real Kubernetes: same manifests, same
// kubectl commands, at the same offsets of virtual time, and compares what kubectl prints
// with what it printed there. What a cluster makes up (uids, addresses, ages …) is
// normalised; everything else must be identical.
//
// A recording is a txtar archive: manifests, and for each command its line, its output
// and its exit code. Commands that need what a simulation does not have are left out by
// name, with the reason, in a list that only gets shorter.
package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
)

// Recording is one scenario as a real cluster answered it.
type Recording struct {
	Name      string
	Namespace string
	Labels    map[string]string // of the namespace
	Files     map[string]string // manifests
	Commands  []Command
}

// Command is one line that was typed, and what came of it.
type Command struct {
	ID     string // "007"
	At     time.Duration
	Line   string
	Stdout string
	Stderr string
	Exit   int
}

var heading = regexp.MustCompile(`^(\d+) at \+([\d.]+)s exit (\d+)$`)

// Parse reads a recording.
func Parse(data []byte) (*Recording, error) {
	a := txtar.Parse(data)
	name, _, _ := strings.Cut(strings.TrimSpace(string(a.Comment)), ":")
	r := &Recording{Name: name, Files: map[string]string{}, Labels: map[string]string{}, Namespace: "default"}
	byID := map[string]int{}
	for _, f := range a.Files {
		text := string(f.Data)
		if m := heading.FindStringSubmatch(f.Name); m != nil {
			s, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, f.Name, err)
			}
			exit, err := strconv.Atoi(m[3])
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, f.Name, err)
			}
			byID[m[1]] = len(r.Commands)
			r.Commands = append(r.Commands, Command{ID: m[1], At: time.Duration(s * float64(time.Second)), Line: strings.TrimSuffix(text, "\n"), Exit: exit})
			continue
		}
		base, ext, _ := strings.Cut(f.Name, ".")
		i, isOutput := byID[base]
		switch {
		case isOutput && ext == "out":
			r.Commands[i].Stdout = text
		case isOutput && ext == "err":
			r.Commands[i].Stderr = text
		case f.Name == "setup.txt":
			r.setup(text)
		case strings.HasSuffix(f.Name, ".yaml") || strings.HasSuffix(f.Name, ".json"):
			r.Files[f.Name] = text
		}
	}
	if r.Name == "" || len(r.Commands) == 0 {
		return nil, fmt.Errorf("this is no recording: it has no name or no commands")
	}
	return r, nil
}

func (r *Recording) setup(text string) {
	words := strings.Fields(text)
	for i, w := range words {
		if w == "namespace:" && i+1 < len(words) {
			r.Namespace = words[i+1]
		}
		if k, v, ok := strings.Cut(w, "="); ok {
			r.Labels[k] = v
		}
	}
}
