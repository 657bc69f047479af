package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"podwalk/assets"
	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/exercises"
	"podwalk/lessons"
	"podwalk/tui/app"
	"podwalk/tui/progress"
	"podwalk/tui/session"
)

// tutor opens the screen. open is "" for the home screen, else "lesson/ID", "drill" …;
// begin may start a session of its own.
func (c *command) tutor(cmd *cobra.Command, open string, begin func() (*app.Session, error)) error {
	if !c.terminal() {
		return usage("this needs a terminal; without one there are podwalk learn --plain, podwalk drill --plain and podwalk trace")
	}
	store, err := c.progress()
	if err != nil {
		return err
	}
	given := func(key string) bool { o := c.cfg.Origins[key]; return o != "default" && o != "locale" && o != "" }
	set := session.Settings(store.Get(), app.Settings{
		Lang: c.cfg.Lang, LangChosen: given("lang"), Theme: c.cfg.Theme, ASCII: c.cfg.ASCII, Speed: c.cfg.Speed, ReducedMotion: c.cfg.ReducedMotion,
	}, given)
	if !knownTheme(set.Theme) {
		set.Theme = c.cfg.Theme // it was saved by another version
	}
	m, err := app.New(app.Options{
		Assets: assets.FS, Renderer: app.NewRenderer(c.stdout), Settings: set, Open: open, Local: true,
		Program: &session.Program{NewShell: c.newKubectl, Progress: store, Seed: c.cfg.Seed, Wall: time.Now},
	})
	if err != nil {
		return err
	}
	if begin != nil {
		s, err := begin()
		if err != nil {
			return err
		}
		m.Start(s)
	}
	return app.Run(cmd.Context(), m, c.stdin, c.stdout)
}

// terminal reports whether there is somebody at a screen.
func (c *command) terminal() bool {
	for _, s := range []any{c.stdin, c.stdout} {
		f, ok := s.(*os.File)
		if !ok {
			return false
		}
		if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice == 0 {
			return false
		}
	}
	return true
}

func (c *command) getenv(name string) string {
	for i := len(c.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(c.env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

func (c *command) learn() *cobra.Command {
	return &cobra.Command{
		Use: "learn [LESSON]", Short: "a lesson; without a name the one that is next",
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := lessons.All()
			if err != nil {
				return err
			}
			id := all[0].ID
			if len(args) == 1 {
				l, err := lessons.ByID(args[0])
				if err != nil {
					return usage("%v", err)
				}
				id = l.ID
			} else {
				store, err := c.progress()
				if err != nil {
					return err
				}
				for i := len(all) - 1; i >= 0; i-- {
					if !store.Get().Lessons[all[i].ID].Done {
						id = all[i].ID
					}
				}
			}
			if c.plainly() {
				l, err := lessons.ByID(id)
				if err != nil {
					return err
				}
				return c.learnPlainly(l)
			}
			return c.tutor(cmd, "lesson/"+id, nil)
		},
	}
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("%q takes one name at most, but there are %d", cmd.CommandPath(), len(args))
	}
	return nil
}

func (c *command) drill() *cobra.Command {
	return &cobra.Command{
		Use: "drill [EXERCISE]", Short: "exercises: which stage failed? make it fail there",
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if c.plainly() {
					return c.drillPlainly(nil)
				}
				return c.tutor(cmd, "drill", nil)
			}
			x, err := exercises.ExerciseByID(args[0])
			if err != nil {
				return usage("%v", err)
			}
			if c.plainly() {
				return c.drillPlainly(&x)
			}
			return c.tutor(cmd, "exercise/"+x.ID, nil)
		},
	}
}

func (c *command) play() *cobra.Command {
	var o traceOptions
	cmd := &cobra.Command{
		Use: "play", Short: "the sandbox: your own manifests and commands, live", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			story, faults, err := c.story(o)
			if err != nil {
				return err
			}
			return c.tutor(cmd, "", func() (*app.Session, error) {
				run, err := engine.StartRun(story, c.publish)
				if err != nil {
					return nil, err
				}
				if err := exercises.PlayStory(run, faults); err != nil {
					run.Close()
					return nil, usage("%v", err)
				}
				title := scenario.Text{"en": "Sandbox", "zh-TW": "沙盒"}
				if what := strings.Join(append(o.files, o.runs...), " · "); what != "" {
					title = scenario.Text{"en": what, "zh-TW": what}
				}
				return session.Published("play", run, title), nil
			})
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "manifest to create (- for standard input); may be repeated")
	f.StringArrayVar(&o.runs, "run", nil, "kubectl command line to run; may be repeated")
	f.StringArrayVar(&o.faults, "fault", nil, "fault to inject; may be repeated")
	return cmd
}

// publish is newKubectl for a run that other terminals may reach with podwalk kubectl: it
// opens a door for them and leaves word of its kubeconfig.
func (c *command) publish(t *engine.Timeline, namespace string) (engine.Shell, error) {
	s, err := c.openKubectl(t, namespace)
	if err != nil {
		return nil, err
	}
	word := c.wordOfRun()
	if word == "" || os.MkdirAll(filepath.Dir(word), 0o700) != nil {
		return s, nil // the run itself does not need it
	}
	public, err := kubectl.Public(t.Public(), kubectl.Config{Namespace: namespace, Client: stage.Kubectl})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	p := published{s, public, word, public.Kubeconfig() + "\n"}
	_ = os.WriteFile(word, []byte(p.says), 0o600)
	return p, nil
}

// published takes the word back when the run ends, unless it is another run's by now.
type published struct {
	*kubectl.Session
	public     *kubectl.Session
	word, says string
}

func (p published) Close() error {
	if now, err := os.ReadFile(p.word); err == nil && string(now) == p.says {
		_ = os.Remove(p.word)
	}
	return errors.Join(p.public.Close(), p.Session.Close())
}

// wordOfRun is the file in which a running sandbox says where its kubeconfig is.
func (c *command) wordOfRun() string {
	p := progress.Path(c.getenv)
	if p == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(p), "running")
}

func (c *command) kubectl() *cobra.Command {
	return &cobra.Command{
		Use: "kubectl ARGS…", Short: "the real kubectl, on the running sandbox", DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			word, err := os.ReadFile(c.wordOfRun())
			config := strings.TrimSpace(string(word))
			if err == nil {
				_, err = os.Stat(config)
			}
			if err != nil {
				return usage("no sandbox is running; start one in another terminal: podwalk play, or podwalk play -f FILE")
			}
			code, err := kubectl.Exec(cmd.Context(), config, args, c.stdin, c.stdout, c.stderr)
			if err != nil {
				return err
			}
			if code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
}
