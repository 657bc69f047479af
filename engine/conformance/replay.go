package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"podwalk/engine/apiserver/serve"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
)

// Outcome is one command, compared.
type Outcome struct {
	Recording string
	Command   Command
	Got       Command
	Identical bool
	Skipped   string // why it was not compared
}

// Report is what a replay found.
type Report struct {
	Name      string
	Outcomes  []Outcome
	Identical int
	Compared  int
}

// Known are the commands that are left out or known to differ: "recording/007", or
// "recording" for all of it, to the reason.
type Known map[string]string

// shape is the cluster on which a recording was taken: nodes that only play their part
// for most, one real machine for those of the kubelet and the network.
func (r *Recording) shape() scenario.Cluster {
	c := shapeOf(r.Name)
	if len(r.Commands) > 0 && strings.HasPrefix(r.Commands[0].Line, "kubectl get nodes") && strings.HasPrefix(r.Commands[0].Stderr, "No resources found") {
		c.Nodes = nil // taken before there were any
	}
	for i := range c.Nodes {
		if !c.Nodes[i].Kwok {
			c.Nodes[i].Images = r.present()
		}
	}
	return c
}

var (
	alreadyPresent = regexp.MustCompile(`Container image "([^"]+)" already present on machine`)
	pulledImage    = regexp.MustCompile(`Successfully pulled image "([^"]+)"`)
)

// present are the images that were on the node before the recording began: those that were
// there when they were needed, and that nobody had pulled for want of them.
func (r *Recording) present() []string {
	pulled := map[string]bool{}
	var out []string
	for _, c := range r.Commands {
		for _, m := range pulledImage.FindAllStringSubmatch(c.Stdout, -1) {
			pulled[m[1]] = true
		}
		for _, m := range alreadyPresent.FindAllStringSubmatch(c.Stdout, -1) {
			if (!pulled[m[1]] || r.pullsAlways(m[1])) && !slices.Contains(out, m[1]) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// pullsAlways reports whether a Pod of the recording pulls an image that may be there.
func (r *Recording) pullsAlways(image string) bool {
	for _, text := range r.Files {
		if strings.Contains(text, "image: "+image+"\n") && strings.Contains(text, "imagePullPolicy: Always") {
			return true
		}
	}
	return false
}

func shapeOf(name string) scenario.Cluster {
	if strings.HasPrefix(name, "d") || strings.HasPrefix(name, "e") || strings.HasPrefix(name, "h") || strings.HasPrefix(name, "f02real") {
		return scenario.Cluster{Seed: 1, Bare: true, Nodes: []scenario.Node{{Name: "real01", IP: "172.30.0.10"}}}
	}
	zone := func(z string) map[string]string { return map[string]string{"topology.kubernetes.io/zone": z} }
	c := scenario.Cluster{Seed: 1, Bare: true, Nodes: []scenario.Node{
		{Name: "controlplane", ControlPlane: true, Kwok: true, Labels: zone("zone-a")},
		{Name: "node01", Kwok: true, Labels: zone("zone-a")},
		{Name: "node02", Kwok: true, Labels: zone("zone-b")},
		{Name: "node03", Kwok: true, Labels: zone("zone-b")},
	}}
	c.Nodes[1].Labels["disktype"] = "ssd"
	return c
}

// Cluster makes a simulated cluster that has come up.
type Cluster func(scenario.Cluster) (serve.Run, error)

// Replay runs a recording against a fresh cluster.
func Replay(ctx context.Context, newCluster Cluster, r *Recording, known Known) (*Report, error) {
	e, err := newCluster(r.shape())
	if err != nil {
		return nil, err
	}
	shared := serve.NewShared(e, serve.Automatic)
	s, err := kubectl.Open(shared, kubectl.Config{Namespace: r.Namespace})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p := &player{ctx: ctx, r: r, shared: shared, session: s, names: map[string]string{}}
	if err := p.prepare(); err != nil {
		return nil, err
	}
	rep := &Report{Name: r.Name}
	begin := shared.Now()
	for _, c := range r.Commands {
		if d := begin.Add(c.At).Sub(shared.Now()); d > 0 {
			shared.Elapse(d)
		}
		o := Outcome{Recording: r.Name, Command: c}
		if why, ok := known[r.Name+"/"+c.ID]; ok {
			o.Skipped = why
		}
		got, err := p.run(c)
		if err != nil {
			o.Skipped = err.Error()
		}
		o.Got = got
		o.Identical = o.Skipped == "" && same(c, got)
		if o.Skipped == "" {
			rep.Compared++
		}
		if o.Identical {
			rep.Identical++
		}
		rep.Outcomes = append(rep.Outcomes, o)
	}
	return rep, nil
}

// same compares what was printed, and how it ended.
func same(want, got Command) bool {
	if want.Exit != got.Exit {
		return false
	}
	for _, p := range [][2]string{{want.Stdout, got.Stdout}, {want.Stderr, got.Stderr}} {
		a, b := Normalise(p[0]), Normalise(p[1])
		if a == b {
			continue
		}
		a, b = Normalise(anyNode(a)), Normalise(anyNode(b))
		if a != b && (!orderless(want.Line, a) || sorted(a) != sorted(b)) {
			return false
		}
	}
	return true
}

// orderless tells whether the order of lines means nothing: lists come in the order of
// names, and names may be generated; kubectl itself prints what a LimitRange says in the
// order of a Go map, another one at every call.
func orderless(line, out string) bool {
	return strings.Contains(out, "-SUFFIX") || strings.HasPrefix(line, "kubectl describe limitrange ")
}

func sorted(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

type player struct {
	ctx     context.Context
	r       *Recording
	shared  *serve.Shared
	session *kubectl.Session
	names   map[string]string // recorded names that commands use, and what they are here
}

// prepare makes the namespace and the files that the commands name.
func (p *player) prepare() error {
	for name, text := range p.r.Files {
		if err := p.session.WriteFile(name, []byte(text)); err != nil {
			return err
		}
	}
	for file, u := range map[string]kubectl.User{
		"admin": kubectl.Admin, "jane": {Name: "jane"}, "badtoken": {Name: "bad", Token: "bad"},
		"anonymous": {Name: "nobody", Anonymous: true}, "kubelet": {Name: "system:node:real01", Groups: []string{"system:nodes"}},
	} {
		if err := p.session.WriteKubeconfig("kubeconfig/"+file+".conf", u); err != nil {
			return err
		}
	}
	other, err := kubectl.OtherAuthority()
	if err != nil {
		return err
	}
	if err := p.session.WriteFile("pki/front-proxy-ca.crt", other); err != nil {
		return err
	}
	if p.r.Namespace == "default" {
		return nil
	}
	if res := p.session.RunArgs(p.ctx, []string{"create", "namespace", p.r.Namespace}, nil); res.Exit != 0 {
		return fmt.Errorf("%s: %s", p.r.Name, res.Stderr)
	}
	for k, v := range p.r.Labels {
		p.session.RunArgs(p.ctx, []string{"label", "namespace", p.r.Namespace, k + "=" + v}, nil)
	}
	p.session.RunArgs(p.ctx, []string{"get", "all"}, nil) // kubectl's cache was warm
	p.shared.Elapse(5 * time.Second)                      // its service account is there by then
	return nil
}

// errTool is a program that the replay does not have.
type errTool struct{ name string }

func (e errTool) Error() string { return "needs " + e.name }

// run carries out one command line: a small shell in which kubectl is the only program.
func (p *player) run(c Command) (Command, error) {
	got := Command{ID: c.ID, Line: c.Line}
	line := p.translate(strings.TrimPrefix(c.Line, "time "))
	prog, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return got, err
	}
	var out, errs bytes.Buffer
	var missing error
	run, err := interp.New(
		interp.StdIO(nil, &out, &errs), interp.Dir(p.session.Dir()),
		interp.Env(expand.ListEnviron("HOME="+p.session.Dir())),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(ctx context.Context, args []string) error {
				switch path.Base(args[0]) {
				case "kubectl":
					return p.kubectl(ctx, args[1:])
				case "sed":
					if sed(interp.HandlerCtx(ctx), args[1:]) {
						return nil
					}
				}
				missing = errTool{args[0]}
				return interp.ExitStatus(127)
			}
		}),
	)
	if err != nil {
		return got, err
	}
	err = run.Run(p.ctx, prog)
	got.Stdout, got.Stderr = out.String(), errs.String()
	var status interp.ExitStatus
	if errors.As(err, &status) {
		got.Exit = int(status)
		err = nil
	}
	return got, errors.Join(missing, err)
}

// sed does the one thing that the recordings ask of it: s/this/that/ on its input.
func sed(h interp.HandlerContext, args []string) bool {
	if len(args) != 1 {
		return false
	}
	parts := strings.Split(args[0], "/")
	if len(parts) != 4 || parts[0] != "s" || parts[3] != "" {
		return false
	}
	in, err := io.ReadAll(h.Stdin)
	if err != nil {
		return false
	}
	for l := range strings.Lines(string(in)) {
		_, _ = io.WriteString(h.Stdout, strings.Replace(l, parts[1], strings.ReplaceAll(parts[2], `\n`, "\n"), 1))
	}
	return true
}

func (p *player) kubectl(ctx context.Context, args []string) error {
	h := interp.HandlerCtx(ctx)
	var stdin []byte
	if h.Stdin != nil {
		b, err := io.ReadAll(h.Stdin)
		if err != nil {
			return err
		}
		stdin = b
	}
	var env []string
	if v := h.Env.Get("KUBECONFIG"); v.IsSet() {
		env = append(env, "KUBECONFIG="+v.String())
	}
	res := p.session.RunArgs(ctx, args, stdin, env...)
	_, _ = io.WriteString(h.Stdout, res.Stdout)
	_, _ = io.WriteString(h.Stderr, res.Stderr)
	if res.Exit != 0 {
		return interp.ExitStatus(uint8(res.Exit))
	}
	return nil
}
