package session

import (
	"strings"

	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/exercises"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
	"podwalk/tui/player"
	"podwalk/tui/views"
)

// NewShell makes the kubectl of a run.
type NewShell func(t *engine.Timeline, namespace string) (engine.Shell, error)

// Play makes a session of a run that has begun: the sandbox.
func Play(id string, r *engine.Run, title scenario.Text) *app.Session {
	return base(id, r, NewTimeline(r, false), title)
}

// Published is Play for a run that other terminals reach too: the screen follows what they
// do.
func Published(id string, r *engine.Run, title scenario.Text) *app.Session {
	t := NewTimeline(r, false)
	s := base(id, r, t, title)
	s.Moved, s.Renew = r.Moved(), t.Sync
	return s
}

// base is what every session has: kubectl, faults, a verdict.
func base(id string, r *engine.Run, t *Timeline, title scenario.Text) *app.Session {
	return &app.Session{
		ID: id, Timeline: t, Start: -1,
		Title:  func(l i18n.Lang) string { return title.In(string(l)) },
		Faults: palette,
		Inject: func(cursor int, id string) (player.Timeline, error) {
			f, err := exercises.FaultByID(id)
			if err != nil {
				return t, err
			}
			t.breaks()
			t.goTo(f, cursor)
			err = f.Inject(r)
			t.Sync()
			return t, err
		},
		Kubectl: func(cursor int, line string) app.Result { return run(r, t, cursor, line, r.Kubectl) },
		Complete: func(cursor int, line string) []string {
			return complete(view{r.Seek(cursor + 1)}, line)
		},
		Verdict: func(c *i18n.Catalog) string { return Verdict(c, r.Verdict()) },
		Left:    func(int) { r.Close() },
	}
}

// Verdict says how a run ended.
func Verdict(c *i18n.Catalog, v engine.Verdict) string {
	if v.Ready {
		return c.T("app.ready")
	}
	return c.T("app.failedAt", "stage", c.Stage(v.Stage))
}

// palette lists every fault, in the order of the stages.
func palette(l i18n.Lang) []views.FaultItem {
	all, err := exercises.Faults()
	if err != nil {
		return nil // the tests of package exercises see to it
	}
	var out []views.FaultItem
	for _, f := range all {
		out = append(out, views.FaultItem{
			ID: f.ID, Step: stage.StepOf(f.Stage), Title: f.Title.In(string(l)), Symptom: f.Symptom.In(string(l)), Rewrites: f.Rewrites(),
		})
	}
	return out
}

// run runs a command line at the cursor. Looking leaves the story where it is; what
// changes the cluster leads to the first hop that it caused.
func run(r *engine.Run, t *Timeline, cursor int, line string, do func(line string) (engine.Output, error)) app.Result {
	r.Seek(cursor + 1)
	out, err := do(line)
	t.Sync()
	res := app.Result{Output: out.Stdout, Failed: out.Code != 0, Timeline: t, Hop: -1}
	if s := strings.TrimRight(out.Stderr, "\n"); s != "" {
		res.Output = strings.TrimRight(out.Stdout, "\n")
		if res.Output != "" {
			res.Output += "\n"
		}
		res.Output += s
	}
	if err != nil {
		res.Output, res.Failed = err.Error(), true
	}
	if t.Len() > cursor+1 && kubectl.Changes(line) {
		res.Hop = cursor + 1
	}
	return res
}
