package engine_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
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
	"etcd":                      {},
	"apiserver":                 {"etcd", "apiserver/admission", "apiserver/resources", "apiserver/wire"},
	"apiserver/resources":       {},
	"apiserver/admission":       {},
	"apiserver/authn":           {"apiserver/wire", "apiserver/admission"},
	"apiserver/authz":           {"apiserver/admission"},
	"apiserver/wire":            {},
	"apiserver/serve/servetest": {"*"}, // a cluster for tests of the HTTP edge
	"apiserver/serve":           {"apiserver/wire"},
	"client":                    {"apiserver/wire"},
	"kubectl":                   {"apiserver/serve"},
	"scheduler":                 {"client", "apiserver/wire", "scheduler/framework", "scheduler/plugins"},
	"scheduler/framework":       {},
	"scheduler/plugins":         {"scheduler/framework"},
	"controllers":               {"client", "apiserver/wire"},
	"kubelet":                   {"client", "apiserver/wire", "cri", "csi"},
	"cri":                       {"registry", "process"},
	"cni":                       {},
	"csi":                       {},
	"registry":                  {"process"}, // an image holds programs
	"kubeproxy":                 {"client"},
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
var faceOfEngine = map[string]bool{"": true, "stage": true, "trace": true, "fault": true, "scenario": true, "kubectl": true, "kernel": true, "conformance": true, "kube": true}

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
			t.Errorf("%s imports %s: outside the engine only its face is used (engine, stage, trace, fault, scenario, kubectl)", s.file, imp)
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

// banned are functions of other packages that would make two runs differ.
var banned = []struct {
	pkg   string // import path, or its end
	funcs string // names, or "*" for all but those that make a source of one's own
	why   string
}{
	{"time", "Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker", "time only passes in the kernel"},
	{"apis/meta/v1", "Now NowMicro", "time only passes in the kernel"},
	{"math/rand", "*", "random numbers come from named streams of the kernel"},
	{"math/rand/v2", "*", "random numbers come from named streams of the kernel"},
	{"crypto/rand", "*", "random numbers come from named streams of the kernel"},
	{"util/rand", "*", "random numbers come from named streams of the kernel"},
	{"util/uuid", "*", "ids come from named streams of the kernel"},
	{"google/uuid", "*", "ids come from named streams of the kernel"},
}

// ownSource are the functions of the random packages that draw nothing.
var ownSource = map[string]bool{"New": true, "NewPCG": true, "NewChaCha8": true, "NewSource": true, "SafeEncodeString": true}

func whyBanned(imp, name string) string {
	for _, b := range banned {
		if imp != b.pkg && !strings.HasSuffix(imp, "/"+b.pkg) {
			continue
		}
		if b.funcs == "*" && !ownSource[name] || slices.Contains(strings.Fields(b.funcs), name) {
			return b.why
		}
	}
	return ""
}

func TestBannedCalls(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.pkg, "engine") || atTheEdge[s.pkg] {
			continue
		}
		names := importNames(s)
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: the engine is one goroutine", s.fset.Position(n.Pos()))
			case *ast.SelectorExpr: // taking the function is as good as calling it
				if x, ok := n.X.(*ast.Ident); ok {
					if why := whyBanned(names[x.Name], n.Sel.Name); why != "" && !isType(names[x.Name], n.Sel.Name) {
						t.Errorf("%s: %s.%s: %s", s.fset.Position(n.Pos()), x.Name, n.Sel.Name, why)
					}
				}
			}
			return true
		})
	}
}

// isType knows the types of the random packages.
func isType(imp, name string) bool {
	return strings.HasPrefix(imp, "math/rand") && slices.Contains([]string{"Rand", "PCG", "Source", "ChaCha8", "Zipf"}, name)
}

// importNames maps what a file calls its imports to their paths.
func importNames(s source) map[string]string {
	names := map[string]string{}
	for _, i := range s.ast.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		name := path.Base(p)
		if name == "v2" {
			name = path.Base(path.Dir(p))
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
	}
	return names
}

func TestBanCanFail(t *testing.T) {
	for call, want := range map[[2]string]bool{
		{"time", "Now"}: true, {"time", "Second"}: false, {"math/rand/v2", "IntN"}: true, {"math/rand/v2", "New"}: false,
		{"k8s.io/apimachinery/pkg/apis/meta/v1", "Now"}: true, {"k8s.io/apimachinery/pkg/util/uuid", "NewUUID"}: true, {"k8s.io/api/core/v1", "Now"}: false,
	} {
		if got := whyBanned(call[0], call[1]) != ""; got != want {
			t.Errorf("%v is banned: %v, want %v", call, got, want)
		}
	}
}

// TestTableIsNoWiderThanTheHouse: every row is a package that exists, and every permission
// is used.
func TestTableIsNoWiderThanTheHouse(t *testing.T) {
	used := map[string]map[string]bool{}
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.pkg, "engine") {
			continue
		}
		from := strings.TrimPrefix(strings.TrimPrefix(s.pkg, "engine"), "/")
		if from == "" {
			from = "."
		}
		if used[from] == nil {
			used[from] = map[string]bool{}
		}
		for _, imp := range s.imports {
			if to, ok := strings.CutPrefix(imp, module+"engine/"); ok {
				used[from][to] = true
			}
		}
	}
	for from, list := range allowed {
		if used[from] == nil {
			t.Errorf("the table has a row for engine/%s, which does not exist", from)
			continue
		}
		for _, to := range list {
			if to != "*" && !used[from][to] {
				t.Errorf("engine/%s may import %s and does not", from, to)
			}
		}
	}
}

// toolkit is where the screen's libraries may be imported.
var toolkit = map[string]bool{"tui/app": true, "tui/player": true, "tui/theme": true, "tui/ui": true, "tui/panes": true, "tui/views": true, "tui/serve": true, "tui/session": true, "tui/tuitest": true, "tui/tuitest/gallery": true}

func TestToolkitStaysInside(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			if strings.HasPrefix(imp, "github.com/charmbracelet/") {
				if !toolkit[s.pkg] {
					t.Errorf("%s imports %s; only tui/{app,player,theme,ui,panes,views,serve} do", s.file, imp)
				}
			}
		}
	}
}
