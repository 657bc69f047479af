package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"podwalk/engine/kernel"
	"podwalk/engine/trace"
)

// TestLineIsPrintable: texts that come from manifests do nothing to the terminal.
func TestLineIsPrintable(t *testing.T) {
	h := trace.Hop{
		Object: trace.Ref{Kind: "Pod", Name: "a\x1b[31mred\a"}, Reason: "R\r", Message: "one\ntwo \u202etxt \u009b2J \xff 容器 é",
		Verb: "POST\b",
	}
	want := `Pod/a\x1b[31mred\a  R\r: one two \u202etxt \u009b2J \xff 容器 é`
	if line := h.Line(0); !strings.HasSuffix(line, want) || strings.Contains(line, "\b") {
		t.Errorf("the line is %q, want %q", line, want)
	}
}

// TestFollower: a story that is told while it grows is the story that is told at its end.
func TestFollower(t *testing.T) {
	l := trace.New(kernel.New(1))
	var f trace.Follower
	var got []trace.Hop
	cause := uint64(0)
	for i := range 20 {
		cause = l.Record(trace.Hop{Verb: fmt.Sprint(i), Background: i%3 == 1, Cause: cause})
		if i%4 == 0 {
			got = append(got, f.Next(l)...)
		}
	}
	got = append(got, f.Next(l)...)
	if want := l.Story(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it told\n%v\nwant\n%v", got, want)
	}
	l.Promote(2) // it lies before what was told
	if late := f.Next(l); len(late) != 1 || late[0].Verb != "1" {
		t.Errorf("a hop that was promoted is told as %v", late)
	}
	if again := f.Next(l); len(again) != 0 {
		t.Errorf("it tells %v twice", again)
	}
}
