package i18n

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"podwalk/assets"
)

// built are the beginnings of keys whose end is found at run time. The end of a key of
// the first kind is a literal somewhere in the code; those of the second kind are told by
// the vocabulary of stages, Kubernetes' reasons and components.
var (
	built = []string{"diagram.", "help.", "key.", "outcome.", "tab."}
	free  = []string{"metaphor.", "reason.", "stage.", "step."}
)

// said reads what the program may ask the catalogue for: all string literals of the code
// (asked: those given to T or Has as they are), and the words of the diagrams.
func said(t *testing.T) (literals, asked map[string]bool) {
	t.Helper()
	literals, asked = map[string]bool{}, map[string]bool{}
	text := func(n ast.Node) (string, bool) {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			s, err := strconv.Unquote(l.Value)
			return s, err == nil
		}
		return "", false
	}
	read := func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := text(n); ok {
				literals[s] = true
			}
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "T" || f.Sel.Name == "Has") {
					if s, ok := text(call.Args[0]); ok {
						asked[s] = true
					}
				}
			}
			return true
		})
	}
	for _, dir := range []string{"tui", "lessons", "exercises", "engine/trace"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				read(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	key := regexp.MustCompile(`\bbox\.[\w.]+`)
	diagrams, err := fs.Glob(assets.FS, "diagrams/*.yaml")
	if err != nil || len(diagrams) == 0 {
		t.Fatal("no diagrams", err)
	}
	for _, name := range diagrams {
		data, err := fs.ReadFile(assets.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		literals[strings.TrimSuffix(filepath.Base(name), ".yaml")] = true
		for _, k := range key.FindAllString(string(data), -1) {
			asked[k], literals[k] = true, true
		}
	}
	if len(asked) < 100 {
		t.Fatalf("the code asks for %d keys only: it was not read", len(asked))
	}
	return literals, asked
}

func TestWhatIsAskedForIsThere(t *testing.T) {
	c := load(t).In(English)
	_, asked := said(t)
	for k := range asked {
		if regexp.MustCompile(`^[a-z]+(\.\w+)+$`).MatchString(k) && !c.Has(k) {
			t.Errorf("%s is asked for, and there is no such key", k)
		}
	}
}

func TestWhatIsThereIsAskedFor(t *testing.T) {
	literals, _ := said(t)
	for _, k := range load(t).In(English).Keys() {
		used := literals[k]
		for _, p := range built {
			rest, ok := strings.CutPrefix(k, p)
			used = used || ok && literals[rest]
		}
		for _, p := range free {
			used = used || strings.HasPrefix(k, p)
		}
		if !used {
			t.Errorf("nobody asks for %s", k)
		}
	}
}

func TestKeysThatYAMLTakesForTruth(t *testing.T) {
	for _, tree := range []map[string]any{{"true": "full"}, {"settings": map[string]any{"false": "reduced"}}} {
		if err := flatten("", tree, map[string]string{}); err == nil {
			t.Errorf("%v: a key that was on or off before YAML read it", tree)
		}
	}
}
