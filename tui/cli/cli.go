// Package cli holds podwalk's commands: it reads flags and settings, builds what they
// ask for, and maps errors to exit codes. 0: all is well; 1: the run failed, as asked to
// find out; 2: bad input.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"podwalk/assets"
	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/config"
	"podwalk/tui/i18n"
	"podwalk/tui/theme"
)

// Run is podwalk with its surroundings given; main only passes the real ones.
func Run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	words, err := i18n.Load(assets.FS)
	if err != nil {
		fmt.Fprintln(stderr, "podwalk: "+err.Error())
		return 2
	}
	c := &command{env: env, stdin: stdin, stdout: stdout, stderr: stderr, bundle: words}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err = root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(stderr, "podwalk: "+trace.Printable(err.Error()))
	var u *usageError
	if errors.As(err, &u) && u.hint != "" {
		fmt.Fprintln(stderr, u.hint)
	}
	return 2
}

// command carries the surroundings to the subcommands.
type command struct {
	env    []string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	bundle *i18n.Bundle
	cfg    config.Config
	// stdinRead says that a manifest has come from standard input.
	stdinRead bool
}

func (c *command) words() *i18n.Catalog { return c.bundle.In(i18n.Lang(c.lang())) }

func (c *command) lang() string { return string(c.cfg.Lang) }

// exitCode ends the program with a code when everything has been said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is bad input; its text says what to do.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] == "" {
		return &usageError{text: "there is an empty argument ''; a command is missing, or a variable of your shell is empty", hint: "see " + cmd.CommandPath() + " --help"}
	}
	if len(args) > 0 && !cmd.HasParent() {
		text := fmt.Sprintf("there is no command %q", args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return &usageError{text: text, hint: "see podwalk --help"}
	}
	if len(args) > 0 {
		return usage("%q takes no arguments, but there is %q; see %[1]s --help", cmd.CommandPath(), args[0])
	}
	return nil
}

func (c *command) root() *cobra.Command {
	flags := map[string]*string{}
	root := &cobra.Command{
		Use:           "podwalk",
		Short:         "walk one Kubernetes Pod from kubectl run to a serving container",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return c.tutor(cmd, "", nil) },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			given := map[string]string{}
			for name, v := range flags {
				if cmd.Flags().Changed(name) {
					given[name] = *v
				}
			}
			cfg, err := config.Load(config.Source{Flags: given, Env: c.env, Read: readSettings})
			if err != nil {
				return usage("%v", err)
			}
			if !knownTheme(cfg.Theme) {
				return usage("setting theme (from %s): %q is not one of: auto, %s", cfg.Origins["theme"], cfg.Theme, strings.Join(theme.Names(assets.FS), ", "))
			}
			c.cfg = cfg
			return nil
		},
	}
	for name, help := range map[string]string{
		"config": "settings file", "lang": "language: en or zh-TW", "theme": "theme: auto, dark, light, …",
		"glyphs": "unicode or ascii", "speed": "speed of the player, 0.25 to 8", "motion": "full or reduced",
		"seed": "seed of the simulation",
	} {
		flags[name] = root.PersistentFlags().String(name, "", help)
	}
	flags["plain"] = root.PersistentFlags().String("plain", "", "line by line: for screen readers, pipes and scripts")
	root.PersistentFlags().Lookup("plain").NoOptDefVal = "true"
	root.CompletionOptions.DisableDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{text: err.Error(), hint: "see " + cmd.CommandPath() + " --help"}
	})
	root.AddCommand(c.learn(), c.play(), c.drill(), c.kubectl(), c.trace(), c.stages(), c.faults(), c.lessons(), c.exercises())
	return root
}

func knownTheme(name string) bool {
	return name == "auto" || slices.Contains(theme.Names(assets.FS), name)
}

// newKubectl opens a real kubectl on a timeline.
func (c *command) newKubectl(t *engine.Timeline, namespace string) (engine.Shell, error) {
	return c.openKubectl(t, namespace)
}

func (c *command) openKubectl(t *engine.Timeline, namespace string) (*kubectl.Session, error) {
	return kubectl.Over(t.Outside(), kubectl.Config{Namespace: namespace, Client: stage.Kubectl})
}
