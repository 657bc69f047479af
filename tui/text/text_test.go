package text

import (
	"strings"
	"testing"
)

const mixed = "容器正在建立中Kubernetes會重試（CrashLoopBackOff），請看「Events」。node01 has 100m cpu left; the Pod asks for 250m: `Insufficient cpu`."

func TestWidthIsNarrowForAmbiguous(t *testing.T) {
	for s, want := range map[string]int{"中": 2, "─│╭…•→▶●█—✓": 11, "abc": 3, "「": 2, "é": 1} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestFitIsExact(t *testing.T) {
	for w := range 60 {
		for _, s := range []string{mixed, "", "中", "ab", "一二三四五"} {
			if got := Width(Fit(s, w)); got != w {
				t.Fatalf("Fit(%q, %d) is %d wide", s, w, got)
			}
			if got := Width(TruncateLeft(s, w)); got > w {
				t.Fatalf("TruncateLeft(%q, %d) is %d wide", s, w, got)
			}
		}
	}
}

func TestWrapKeepsTheRules(t *testing.T) {
	squash := func(s string) string { return strings.ReplaceAll(s, " ", "") }
	for w := 1; w <= 100; w++ {
		lines := Wrap(mixed, w)
		if got := squash(strings.Join(lines, "")); got != squash(mixed) {
			t.Fatalf("width %d lost text: %q", w, got)
		}
		for _, l := range lines {
			if Width(l) > w && Width(l) > 2 {
				t.Fatalf("width %d: line %q is %d wide", w, l, Width(l))
			}
			if w >= 24 && strings.ContainsAny(string([]rune(l)[:1]), "，。、）」") {
				t.Errorf("width %d: line starts with closing punctuation: %q", w, l)
			}
			if r := []rune(l); w >= 24 && strings.ContainsAny(string(r[len(r)-1:]), "（「") {
				t.Errorf("width %d: line ends with an opening mark: %q", w, l)
			}
		}
		if w >= 24 && !strings.Contains(strings.Join(lines, "\n"), "CrashLoopBackOff") {
			t.Errorf("width %d broke a Latin word: %q", w, lines)
		}
	}
}

func TestWrapRich(t *testing.T) {
	lines := WrapRich("The **scheduler** says `Insufficient cpu` * here", 18)
	var got []string
	for _, l := range lines {
		got = append(got, l.String())
	}
	want := "The scheduler says|Insufficient cpu *|here"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
	if lines[1][0].Kind != Code || lines[0][1].Kind != Strong {
		t.Errorf("roles lost: %v", lines)
	}
}
