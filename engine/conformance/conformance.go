package conformance

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Load reads every recording (*.txtar) of a directory.
func Load(dir fs.FS) ([]*Recording, error) {
	names, err := fs.Glob(dir, "*.txtar")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var out []*Recording
	for _, n := range names {
		data, err := fs.ReadFile(dir, n)
		if err != nil {
			return nil, err
		}
		r, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// table reads a data file: a key and the rest of the line; # begins a comment.
func table(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, rest, _ := strings.Cut(line, " ")
		out[key] = strings.TrimSpace(rest)
	}
	return out
}

// ParseKnown reads a list of commands that are left out, each with its reason.
func ParseKnown(text string) Known { return table(text) }

// ParseBaseline reads how many outputs of each recording are identical at least.
func ParseBaseline(text string) (map[string]int, error) {
	out := map[string]int{}
	for k, v := range table(text) {
		n, err := strconv.Atoi(v)
		if err != nil {
			return nil, fmt.Errorf("baseline of %s: %w", k, err)
		}
		out[k] = n
	}
	return out, nil
}

// Run replays recordings, up to workers of them at a time, and returns the reports in the
// order of the recordings.
func Run(ctx context.Context, newCluster Cluster, recordings []*Recording, known Known, workers int) ([]*Report, error) {
	reports := make([]*Report, len(recordings))
	errs := make([]error, len(recordings))
	slots := make(chan struct{}, max(workers, 1))
	var wg sync.WaitGroup
	for i, r := range recordings {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			reports[i], errs[i] = Replay(ctx, newCluster, r, known)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", recordings[i].Name, err)
		}
	}
	return reports, nil
}

// Summary prints one line for each recording and the sum.
func Summary(w io.Writer, reports []*Report) (identical, compared int) {
	for _, r := range reports {
		fmt.Fprintf(w, "%-40s %3d of %3d identical\n", r.Name, r.Identical, r.Compared)
		identical += r.Identical
		compared += r.Compared
	}
	fmt.Fprintf(w, "%d of %d identical\n", identical, compared)
	return identical, compared
}

// Diff shows how a command's outcome differs, in the normalised form: what the real
// cluster printed with -, what this one printed with +.
func (o Outcome) Diff() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s at %s: $ %s\n", o.Recording, o.Command.ID, o.Command.At, o.Command.Line)
	if o.Skipped != "" {
		fmt.Fprintf(&b, "  left out: %s\n", o.Skipped)
		return b.String()
	}
	if o.Command.Exit != o.Got.Exit {
		fmt.Fprintf(&b, "- exit %d\n+ exit %d\n", o.Command.Exit, o.Got.Exit)
	}
	lineDiff(&b, anyNode(Normalise(o.Command.Stdout)), anyNode(Normalise(o.Got.Stdout)))
	lineDiff(&b, anyNode(Normalise(o.Command.Stderr)), anyNode(Normalise(o.Got.Stderr)))
	return b.String()
}

// lineDiff is a plain longest-common-subsequence diff with a little context.
func lineDiff(b *strings.Builder, want, got string) {
	if want == got {
		return
	}
	x, y := strings.Split(want, "\n"), strings.Split(got, "\n")
	common := make([][]int, len(x)+1)
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			fmt.Fprintf(b, "- %s\n", x[i])
			i++
		default:
			fmt.Fprintf(b, "+ %s\n", y[j])
			j++
		}
	}
}
