package engine_test

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// The house: who may talk to whom in a cluster is who may import whom in the code.

const module = "podwalk/"

// common packages may be imported from anywhere in engine/.
var common = []string{"kernel", "stage", "trace", "kube", "fault", "network"}

// allowed lists what each package under engine/ imports besides the common ones.
var allowed = map[string][]string{
	".":                         {"*"}, // engine.go assembles
	"kernel":                    {},
	"stage":                     {},
	"trace":                     {},
	"kube":                      {},
	"fault":                     {},
	"network":                   {},
	"process":                   {},
	"scenario":                  {},
	"diagnose":                  {},
	"etcd":                      {},
	"apiserver":                 {"etcd", "apiserver/admission", "apiserver/resources", "apiserver/wire"},
	"apiserver/resources":       {},
	"apiserver/admission":       {},
	"apiserver/authn":           {"apiserver/wire", "apiserver/admission"},
	"apiserver/authz":           {"apiserver/wire", "apiserver/admission"},
	"apiserver/wire":            {},
	"apiserver/serve/servetest": {"*"}, // a cluster for tests of the HTTP edge
	"apiserver/serve":           {"apiserver", "apiserver/wire"},
	"client":                    {"apiserver/wire"},
	"kubectl":                   {"apiserver/serve", "apiserver/wire"},
	"scheduler":                 {"client", "apiserver/wire", "scheduler/framework", "scheduler/plugins"},
	"scheduler/framework":       {},
	"scheduler/plugins":         {"scheduler/framework"},
	"controllers":               {"client", "apiserver/wire"},
	"kubelet":                   {"client", "apiserver/wire", "cri", "csi"},
	"cri":                       {"cni", "registry", "process"},
	"cni":                       {},
	"csi":                       {},
	"registry":                  {"process"}, // an image holds programs
	"kubeproxy":                 {"client", "apiserver/wire"},
	"dns":                       {"client", "apiserver/wire"},
	"conformance":               {"*"},
}

// reasons say why an edge is forbidden, as the test prints it.
var reasons = map[string]string{
	"etcd":      "only the API server talks to etcd",
	"cri":       "only the kubelet drives the container runtime",
	"csi":       "only the kubelet drives the storage drivers",
	"cni":       "only the container runtime calls the network plugin",
	"registry":  "only the container runtime pulls images",
	"apiserver": "components reach the cluster only through client",
	"client":    "only components that watch the cluster have a client",
}

// outer lists who may import whom among the top-level folders.
var outer = map[string][]string{
	"main":      {"tui", "engine/kubectl"},
	"tui":       {"tui", "lessons", "exercises", "engine", "assets"},
	"lessons":   {"lessons", "engine", "assets"},
	"exercises": {"exercises", "engine", "assets"},
	"engine":    {"engine", "assets"},
	"assets":    {},
}

// faceOfEngine is what tui, lessons and exercises see of the engine.
var faceOfEngine = map[string]bool{"": true, "stage": true, "trace": true, "fault": true, "scenario": true, "diagnose": true, "kubectl": true, "kernel": true, "conformance": true, "kube": true}

type source struct {
	file    string // slash path from the root
	pkg     string // folder from the root
	test    bool
	imports []string
	ast     *ast.File
	fset    *token.FileSet
	lines   int
}

func sources(t *testing.T) []source {
	t.Helper()
	root := ".."
	var out []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && p != root {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		s := source{file: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), ast: f, fset: fset, lines: bytes.Count(text, []byte("\n"))}
		for _, i := range f.Imports {
			s.imports = append(s.imports, strings.Trim(i.Path.Value, `"`))
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, imp := range s.imports {
			if strings.HasPrefix(imp, module) {
				checkImport(t, s, strings.TrimPrefix(imp, module))
			}
		}
	}
}

func checkImport(t *testing.T, s source, imp string) {
	top, _, _ := strings.Cut(s.pkg, "/")
	if s.pkg == "." {
		top = "main"
	}
	may := false
	for _, a := range outer[top] {
		may = may || imp == a || strings.HasPrefix(imp, a+"/")
	}
	if !may {
		t.Errorf("%s imports %s: %s may import %s", s.file, imp, top, strings.Join(outer[top], ", "))
		return
	}
	inEngine := strings.TrimPrefix(strings.TrimPrefix(imp, "engine"), "/")
	if imp != "engine" && !strings.HasPrefix(imp, "engine/") {
		return
	}
	if top != "engine" {
		if top != "main" && !faceOfEngine[inEngine] {
			t.Errorf("%s imports %s: outside the engine only its face is used (engine, stage, trace, fault, scenario, diagnose, kubectl)", s.file, imp)
		}
		return
	}
	from := strings.TrimPrefix(strings.TrimPrefix(s.pkg, "engine"), "/")
	if from == "" {
		from = "."
	}
	list, known := allowed[from]
	if !known {
		t.Errorf("%s: the package engine/%s has no row in the table of imports", s.file, from)
		return
	}
	for _, a := range append(list, common...) {
		if a == "*" || a == inEngine {
			return
		}
	}
	why := reasons[inEngine]
	if why == "" {
		why = "it is not in its row of the table"
	}
	t.Errorf("%s imports %s: %s", s.file, imp, why)
}

func TestTopLevel(t *testing.T) {
	want := map[string]bool{"main.go": true, "tui": true, "engine": true, "lessons": true, "exercises": true, "assets": true, "go.mod": true, "go.sum": true, "README.md": true, "podwalk": true}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !want[e.Name()] && !strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > 700 {
			t.Errorf("%s has %d lines; 700 at most", s.file, s.lines)
		}
		if s.file == "main.go" && s.lines > 60 {
			t.Errorf("main.go has %d lines; 60 at most", s.lines)
		}
		if s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > 70 {
				t.Errorf("%s: function %s has %d lines; 70 at most", s.file, f.Name.Name, n)
			}
		}
	}
}

func TestPackageDocs(t *testing.T) {
	has := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			has[s.pkg] = has[s.pkg] || s.ast.Doc.Text() != ""
		}
	}
	var missing []string
	for pkg, ok := range has {
		if !ok {
			missing = append(missing, pkg)
		}
	}
	sort.Strings(missing)
	for _, pkg := range missing {
		t.Errorf("package %s has no doc comment", pkg)
	}
}

// atTheEdge stands where the simulation meets the real world.
var atTheEdge = map[string]bool{"engine/apiserver/serve": true, "engine/kubectl": true, "engine/conformance": true, "engine/apiserver/serve/servetest": true}

var banned = []struct{ pattern, why string }{
	{`\btime\.(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTimer|NewTicker)\(`, "time only passes in the kernel"},
	{`^\s*go (func|[a-zA-Z_.]+\()`, "the engine is one goroutine"},
	{`(^|[^.\w])rand\.(Int|IntN|Intn|Float64|Perm|Shuffle|Uint64|N)\(`, "random numbers come from named streams of the kernel"},
	{`\buuid\.New`, "ids come from named streams of the kernel"},
	{`\b(metav1|v1)\.Now\(`, "time only passes in the kernel"},
}

func TestBannedCalls(t *testing.T) {
	var compiled []*regexp.Regexp
	for _, b := range banned {
		compiled = append(compiled, regexp.MustCompile(b.pattern))
	}
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.pkg, "engine") || atTheEdge[s.pkg] {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", s.file))
		if err != nil {
			t.Fatal(err)
		}
		scan := bufio.NewScanner(bytes.NewReader(text))
		for n := 1; scan.Scan(); n++ {
			line, _, _ := strings.Cut(scan.Text(), "//")
			for i, re := range compiled {
				if re.MatchString(line) {
					t.Errorf("%s:%d: %s: %s", s.file, n, strings.TrimSpace(line), banned[i].why)
				}
			}
		}
	}
}

// toolkit is where the screen's libraries may be imported.
var toolkit = map[string]bool{"tui/app": true, "tui/player": true, "tui/theme": true, "tui/ui": true, "tui/panes": true, "tui/views": true, "tui/serve": true, "tui/session": true, "tui/tuitest": true, "tui/tuitest/gallery": true}

func TestToolkitStaysInside(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			if strings.HasPrefix(imp, "github.com/charmbracelet/bubbletea") || imp == "github.com/charmbracelet/lipgloss" {
				if !toolkit[s.pkg] {
					t.Errorf("%s imports %s; only tui/{app,player,theme,ui,panes,views,serve} do", s.file, imp)
				}
			}
		}
	}
}
