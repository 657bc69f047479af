// Package plain is the tutor line by line: numbered choices and trace lines over a reader
// and a writer, with no drawing, no colour and no cursor to hunt for. It serves screen
// readers, pipes and scripts, and teaches the same lessons on the same simulation.
package plain

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"podwalk/engine"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/exercises"
	"podwalk/lessons"
	"podwalk/tui/i18n"
	"podwalk/tui/progress"
	"podwalk/tui/text"
)

// width of the lines that are wrapped.
const width = 78

// Tutor talks with one learner.
type Tutor struct {
	in    *bufio.Scanner
	out   io.Writer
	words *i18n.Catalog
}

// New returns a tutor that reads answers from in and writes to out.
func New(in io.Reader, out io.Writer, words *i18n.Catalog) *Tutor {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 4096), 1<<20)
	return &Tutor{in: s, out: out, words: words}
}

func (t *Tutor) say(lines ...string) {
	for _, l := range lines {
		fmt.Fprintln(t.out, l)
	}
}

func (t *Tutor) prose(s string) {
	for _, p := range strings.Split(s, "\n") {
		if p == "" {
			t.say("")
			continue
		}
		t.say(text.Wrap(text.Strip(p), width)...)
	}
}

// ask reads one line; ok is false at the end of the input or when the learner leaves.
func (t *Tutor) ask(prompt string) (line string, ok bool) {
	fmt.Fprint(t.out, prompt+" > ")
	if !t.in.Scan() {
		t.say("")
		return "", false
	}
	line = strings.TrimSpace(t.in.Text())
	return line, line != "q"
}

// Keep is told what the learner has done, to be remembered.
type Keep struct {
	Lesson func(step int, answers map[string]string)
	Result func(points int, truth stage.ID)
}

// Learn goes through a lesson from where it was left. It returns nil when the learner
// leaves.
func (t *Tutor) Learn(l lessons.Lesson, run *engine.Run, had progress.Lesson, keep Keep) error {
	w := lessons.NewWalk(l, run, exercises.Palette{})
	if err := w.Start(); err != nil {
		return err
	}
	if err := w.Resume(had.Step, had.Answers, func() {}); err != nil {
		return err
	}
	t.say(l.Title(string(t.words.Lang)), "", t.words.T("plain.intro"))
	told, first, asked := 0, 0, 0
	if _, i := w.Step(); i > 0 {
		t.say("", t.words.T("plain.resumed", "n", i+1, "m", len(l.Steps)))
		told = w.Target()
	}
	for {
		told = t.hops(run, told, w.Target())
		right, ok, err := t.step(w, run)
		if err != nil || !ok {
			return err
		}
		told = t.hops(run, told, w.Target())
		if s, i := w.Step(); s.Ask != nil {
			asked++
			if right {
				first++
			}
			keep.lesson(i, w)
		} else {
			keep.lesson(i, w)
		}
		if w.Last() {
			t.say("", t.words.T("plain.done", "right", first, "all", asked))
			return nil
		}
		if _, ok := t.ask(t.words.T("plain.onward")); !ok {
			return nil
		}
		if err := w.Next(); err != nil {
			return err
		}
	}
}

func (k Keep) lesson(i int, w *lessons.Walk) {
	if k.Lesson != nil {
		k.Lesson(i, w.Answers())
	}
}

// hops prints what has happened since the learner was last told.
func (t *Tutor) hops(run *engine.Run, from, to int) int {
	hops := run.Hops()
	to = min(to, len(hops))
	if from >= to {
		return from
	}
	t.say("")
	for _, h := range hops[from:to] {
		t.say(h.Line(run.Origin()))
		if c, ok := h.Detail.(trace.SchedulingCycle); ok && (h.Stage == stage.Filter || h.Stage == stage.Score) {
			t.cycle(c)
		}
	}
	return to
}

// cycle tells what the scheduler's plugins said of each node.
func (t *Tutor) cycle(c trace.SchedulingCycle) {
	for _, n := range c.Nodes {
		refused := slices.IndexFunc(n.Status, func(s string) bool { return s != "" && s != "-" })
		var scores []string
		for _, s := range n.Scores {
			scores = append(scores, fmt.Sprintf("%s %d×%d", s.Plugin, s.Raw, s.Weight))
		}
		switch {
		case refused >= 0:
			t.say("  " + t.words.T("plain.refused", "node", n.Node, "plugin", c.Plugins[refused], "why", n.Status[refused]))
		case len(scores) > 0:
			t.say("  " + t.words.T("plain.scored", "node", n.Node, "total", n.Total, "scores", strings.Join(scores, ", ")))
		default:
			t.say("  " + t.words.T("plain.passed", "node", n.Node))
		}
	}
}

// step shows one step and stays until it is done. right is whether the first answer was.
func (t *Tutor) step(w *lessons.Walk, run *engine.Run) (right, ok bool, err error) {
	lang := string(t.words.Lang)
	words, err := w.Words(lang)
	if err != nil {
		return false, false, err
	}
	t.say("", words.Title, "")
	t.prose(words.Body)
	s, _ := w.Step()
	if s.Panel == "events" {
		t.kubectl(run, w.Target(), "kubectl get events --field-selector involvedObject.kind=Pod --sort-by=.lastTimestamp")
	}
	at := w.Target() // hops of the story that lie behind the learner
	for w.Held() == "try" {
		line, ok := t.ask(t.words.T("plain.try", "line", s.Try))
		if !ok {
			return false, false, nil
		}
		if line == "" {
			line = s.Try
		}
		at = t.kubectl(run, at, line)
		if w.Did(); w.Held() == "try" {
			t.say(t.words.T("plain.again"))
		}
	}
	if s.Ask == nil {
		return false, true, nil
	}
	t.say("")
	t.prose(words.Question)
	for i, c := range words.Choices {
		t.say(fmt.Sprintf("%d. %s", i+1, text.Strip(c.Label)))
	}
	for tries := 0; ; tries++ {
		n, ok := t.number(run, w.Target(), len(words.Choices), t.words.T("plain.choose", "n", len(words.Choices)))
		if !ok {
			return false, false, nil
		}
		good, err := w.Answer(words.Choices[n-1].ID)
		if err != nil {
			return false, false, err
		}
		after, err := w.Words(lang)
		if err != nil {
			return false, false, err
		}
		verdict := "plain.wrong"
		if good {
			verdict = "plain.right"
		}
		t.say(t.words.T(verdict))
		t.prose(after.Feedback)
		if good {
			return tries == 0, true, nil
		}
	}
}

// number asks until there is a number from 1 to n; kubectl commands run meanwhile, at the
// moment that has been told.
func (t *Tutor) number(run *engine.Run, at, n int, prompt string) (int, bool) {
	for {
		line, ok := t.ask(prompt)
		if !ok {
			return 0, false
		}
		if isKubectl(line) {
			at = t.kubectl(run, at, line)
			continue
		}
		if i, err := strconv.Atoi(line); err == nil && i >= 1 && i <= n {
			return i, true
		}
		t.say(t.words.T("plain.invalid"))
	}
}

func isKubectl(line string) bool {
	first, _, _ := strings.Cut(line, " ")
	return first == "k" || first == "kubectl"
}

// kubectl runs a command line after the first at hops of the story, and returns after how
// many the next one is to run: looking leaves the moment as it is, a change goes on from
// what it brought about.
func (t *Tutor) kubectl(run *engine.Run, at int, line string) int {
	run.Seek(at)
	branch, _ := run.Branch()
	known := run.Len()
	t.printed(run.Kubectl(line))
	if now, _ := run.Branch(); now != branch || at == known {
		return run.Len()
	}
	return at
}

// printed shows what a command printed.
func (t *Tutor) printed(out engine.Output, err error) {
	if err != nil {
		t.say(err.Error())
	}
	for _, s := range []string{out.Stdout, out.Stderr} {
		if s = strings.TrimRight(s, "\n"); s != "" {
			t.say(s)
		}
	}
}
