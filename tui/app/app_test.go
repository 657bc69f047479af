package app_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podwalk/tui/app"
	"podwalk/tui/i18n"
	"podwalk/tui/text"
	"podwalk/tui/tuitest"
)

var update = flag.Bool("update", false, "rewrite the golden screens")

func drive(t testing.TB, w, h int, l i18n.Lang, open string, keys ...string) *tuitest.Driver {
	t.Helper()
	d, err := tuitest.New(w, h, l, open, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Keys(keys...)
	return d
}

func exact(t *testing.T, d *tuitest.Driver, w, h int, what string) {
	t.Helper()
	lines := strings.Split(d.Screen(), "\n")
	if len(lines) != h {
		t.Fatalf("%s: %d lines, want %d", what, len(lines), h)
	}
	for i, l := range lines {
		if text.Width(l) != w {
			t.Fatalf("%s: line %d is %d wide, want %d: %q", what, i, text.Width(l), w, l)
		}
	}
}

// scenes are the screens worth looking at; the goldens and the width sweep use them.
var scenes = []struct {
	name, open string
	keys       []string
}{
	{"home", "", nil},
	{"settings", "", []string{"down", "down", "down", "down", "down", "enter"}},
	{"help", "", []string{"?"}},
	{"start", "happy", nil},
	{"cluster", "happy", []string{"n", "n"}},
	{"gates", "happy", []string{"n", "n", "n", "n", "n", "n"}},
	{"refused", "refused", []string{"G"}},
	{"filter", "noroom", []string{"]", "]", "]", "]", "]", "n", "n"}},
	{"score", "happy", []string{"]", "]", "]", "]", "]", "n", "n", "n", "n"}},
	{"node", "happy", []string{"G"}},
	{"pull", "notag", []string{"G", "p"}},
	{"object", "notag", []string{"G", "tab"}},
	{"events", "notag", []string{"G", "tab", "tab"}},
	{"compare", "notag", []string{"G", "c"}},
	{"metaphor", "happy", []string{"]", "]", "]", "]", "]", "m"}},
	{"why", "noroom", []string{"G", "w"}},
	{"kubectl", "happy", []string{"G", "k", "k", "space", "get", "enter"}},
	{"fault", "happy", []string{"n", "f", "im"}},
	{"tree", "deployment", []string{"]", "]", "]", "]", "z", "z", "z", "z", "z"}},
	{"routing", "deployment", []string{"G", "z", "z", "z", "z", "z", "z"}},
	{"question", "lesson", []string{"]", "]", "]", "]", "]", "n", "n"}},
	{"answered", "lesson", []string{"]", "]", "]", "]", "]", "n", "n", "2"}},
	{"identify", "identify", []string{"down", "down", "down", "enter", "down"}},
	{"verdict", "identify", []string{"down", "enter", "enter"}},
}

func TestGoldenScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 36}, {200, 60}} {
		for _, l := range i18n.Langs() {
			var b strings.Builder
			for _, s := range scenes {
				d := drive(t, size[0], size[1], l, s.open, s.keys...)
				what := fmt.Sprintf("%s %dx%d %s", s.name, size[0], size[1], l)
				exact(t, d, size[0], size[1], what)
				fmt.Fprintf(&b, "== %s\n%s\n", s.name, trimRight(d.Screen()))
			}
			golden(t, fmt.Sprintf("%dx%d.%s.txt", size[0], size[1], l), b.String())
		}
	}
}

func trimRight(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	scene := ""
	for i := range min(len(a), len(b)) {
		if strings.HasPrefix(b[i], "== ") {
			scene = b[i]
		}
		if a[i] != b[i] {
			t.Errorf("%s: first difference in %s, line %d:\nwant %s\ngot  %s\n(go test ./tui/app -update rewrites)", name, scene, i+1, a[i], b[i])
			return
		}
	}
	t.Errorf("%s: %d lines, want %d", name, len(b), len(a))
}

// TestEverySize draws every scene in many sizes: each line exactly as wide as the
// terminal.
func TestEverySize(t *testing.T) {
	for _, l := range i18n.Langs() {
		for _, s := range scenes {
			d := drive(t, 120, 36, l, s.open, s.keys...)
			for w := 1; w <= 200; w += 9 {
				h := 10 + w*5/13%55
				d.Resize(w, h)
				exact(t, d, w, h, fmt.Sprintf("%s %dx%d %s", s.name, w, h, l))
			}
		}
	}
}

func TestEveryThemeAndGlyphSetIsExact(t *testing.T) {
	for _, name := range []string{"dark", "light", "high-contrast", "colour-blind", "mono"} {
		d, err := tuitest.New(100, 30, i18n.Chinese, "notag", func(o *app.Options) { o.Settings.Theme, o.Settings.ASCII = name, true })
		if err != nil {
			t.Fatal(err)
		}
		d.Keys("G")
		exact(t, d, 100, 30, name)
		for _, r := range d.Screen() {
			if strings.ContainsRune("╭╮┏━┃│─●✓✗▶▣▤█░→", r) {
				t.Fatalf("the ASCII glyph set draws %q", r)
			}
		}
	}
}

func TestFirstStartAsksOnlyForTheLanguage(t *testing.T) {
	d, err := tuitest.New(80, 24, i18n.English, "", func(o *app.Options) { o.Settings.LangChosen = false })
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Screen(); !strings.Contains(s, "繁體中文") || strings.Contains(s, "Settings") {
		t.Fatalf("first start shows\n%s", s)
	}
	d.Keys("down", "enter")
	if s := d.Screen(); !strings.Contains(s, "現在做什麼") {
		t.Fatalf("after choosing Chinese\n%s", s)
	}
	if d.P.Saved == nil || d.P.Saved.Lang != i18n.Chinese {
		t.Error("the choice was not saved")
	}
}

func TestLanguageIsLive(t *testing.T) {
	d := drive(t, 120, 36, i18n.English, "happy", "n", "n", "l")
	if s := d.Screen(); !strings.Contains(s, "接收請求") {
		t.Errorf("after l\n%s", s)
	}
	d.Keys("l")
	if s := d.Screen(); !strings.Contains(s, "API request") {
		t.Errorf("after l twice\n%s", s)
	}
}

// TestPredictBeforeReveal: the story does not go on while a question is open.
func TestPredictBeforeReveal(t *testing.T) {
	d := drive(t, 120, 36, i18n.English, "lesson", "]", "]", "]", "]", "]", "n", "n", "n")
	if s := d.Screen(); !strings.Contains(s, "Answer first") || strings.Contains(s, "It is the only node") {
		t.Fatalf("the question does not hold the story\n%s", s)
	}
	before := d.Screen()[:60]
	d.Keys("n", ".", "]", "G", "space")
	if got := d.Screen(); !strings.HasPrefix(got, before) {
		t.Fatalf("a key went past the open question\n%s", got)
	}
	d.Keys("2")
	if s := d.Screen(); !strings.Contains(s, "It is the only node") {
		t.Fatalf("no feedback\n%s", s)
	}
	d.Keys("n")
	if s := d.Screen(); strings.Contains(s, "Which node wins") {
		t.Fatalf("the story does not go on\n%s", s)
	}
}

func TestPlayRunsToTheEnd(t *testing.T) {
	d := drive(t, 120, 36, i18n.English, "happy", "+", "+", "+", "space")
	if s := d.Screen(); !strings.Contains(s, "hop 36 of 36") {
		t.Errorf("playing stopped early\n%s", s)
	}
}

func TestKubectlPane(t *testing.T) {
	d := drive(t, 120, 36, i18n.English, "happy", "k")
	d.Type("kubectl ge")
	d.Keys("tab")
	d.Type("po")
	d.Keys("tab", "enter")
	s := d.Screen()
	if !strings.Contains(s, "$ kubectl get pods") || !strings.Contains(s, "web-5f6") {
		t.Fatalf("completion or output\n%s", s)
	}
	d.Keys("up")
	if s := d.Screen(); strings.Count(s, "kubectl get pods") != 2 {
		t.Errorf("history\n%s", s)
	}
	d.Keys("esc", "esc")
	if s := d.Screen(); !strings.Contains(s, "space play") {
		t.Errorf("esc does not leave the pane\n%s", s)
	}
}

func TestFaultOpensABranch(t *testing.T) {
	d := drive(t, 120, 36, i18n.English, "happy", "n", "n", "f", "cpu", "enter")
	if s := d.Screen(); !strings.Contains(s, "branch 1") || !strings.Contains(s, "Injected") {
		t.Errorf("after injecting\n%s", s)
	}
}

func TestIdentifyTellsHowFarOff(t *testing.T) {
	d := drive(t, 120, 36, i18n.English, "identify", "h")
	if s := d.Screen(); !strings.Contains(s, "kubectl describe pod big") || !strings.Contains(s, "1 left") {
		t.Fatalf("hint\n%s", s)
	}
	d.Keys("down", "enter", "enter") // Access, authentication
	s := d.Screen()
	if !strings.Contains(s, "You said Authentication") || !strings.Contains(s, "The line that decides") || !strings.Contains(s, "Filter") {
		t.Errorf("verdict\n%s", s)
	}
}

func BenchmarkFrame(b *testing.B) {
	for _, size := range [][2]int{{120, 36}, {200, 60}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			d := drive(b, size[0], size[1], i18n.Chinese, "happy", "G")
			for b.Loop() {
				d.M.View()
			}
		})
	}
}

// TestBurstsAreTextWhereTextIsTyped: words that arrive at once are what they say, also
// where they are called like a key; elsewhere they are keys one after the other.
func TestBurstsAreTextWhereTextIsTyped(t *testing.T) {
	d := drive(t, 120, 36, i18n.English, "happy", "G", "k")
	for _, w := range []string{"get", " ", "pods", " ", "up", " ", "delete", " ", "enter"} {
		d.Burst(w, false)
	}
	if s := d.Screen(); !strings.Contains(s, "get pods up delete enter") {
		t.Errorf("the prompt does not hold what was typed\n%s", s)
	}
	d = drive(t, 120, 36, i18n.English, "happy")
	d.Burst("nn", false)
	if s := d.Screen(); strings.Contains(s, "hop 0 of") {
		t.Errorf("two keys at once do nothing\n%s", s)
	}
	d.Burst("kget nodes", false)
	if s := d.Screen(); !strings.Contains(s, "$ get nodes") {
		t.Errorf("what follows k is not typed\n%s", s)
	}
}

// TestPastedLinesRunOneAfterTheOther: and the last one, without its end, is left to edit.
func TestPastedLinesRunOneAfterTheOther(t *testing.T) {
	d := drive(t, 120, 36, i18n.English, "happy", "G", "k")
	d.Burst("kubectl get pods\r\nkubectl get nodes\n\nkubectl get ev", true)
	s := d.Screen()
	for _, want := range []string{"$ kubectl get pods ", "$ kubectl get nodes ", "$ kubectl get ev"} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q\n%s", want, s)
		}
	}
	d.Burst(strings.Repeat("x", 1<<20), true)
	if s := d.Screen(); !strings.Contains(s, "more text than a command may have") || !strings.Contains(s, "$ kubectl get ev") {
		t.Errorf("too long a text is not refused\n%s", s)
	}
}
