package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
	"podwalk/engine/trace"
	"podwalk/exercises"
)

// storyDefault is what somebody types who has never used Kubernetes before.
const storyDefault = "kubectl run nginx --image=nginx"

type traceOptions struct {
	files    []string
	runs     []string
	faults   []string
	output   string
	deadline time.Duration
}

func (c *command) trace() *cobra.Command {
	var o traceOptions
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "run a story without a screen and print its hops",
		Long: `Runs commands and manifests on the simulated cluster, prints every hop, and ends with
"ready" (exit code 0) or "failed at: STAGE" (exit code 1). Bad input ends with exit code 2.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runTrace(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "manifest to create (- for standard input); may be repeated")
	f.StringArrayVar(&o.runs, "run", nil, "kubectl command line to run; may be repeated")
	f.StringArrayVar(&o.faults, "fault", nil, "fault to inject; may be repeated")
	f.StringVarP(&o.output, "output", "o", "text", "text, json or mermaid")
	f.DurationVar(&o.deadline, "deadline", 0, "virtual time until all must be well (10m)")
	return cmd
}

func (c *command) runTrace(ctx context.Context, o traceOptions) error {
	out, err := c.hopWriter(o.output)
	if err != nil {
		return err
	}
	story, faults, err := c.story(o)
	if err != nil {
		return err
	}
	if len(o.files)+len(o.runs)+len(o.faults) == 0 {
		fmt.Fprintf(c.stderr, "nothing was asked for, so this is %s; see podwalk trace --help\n", storyDefault)
	}
	run, err := engine.StartRun(story, c.newKubectl)
	if err != nil {
		return err
	}
	defer run.Close()
	defer context.AfterFunc(ctx, func() { run.Close() })() // an interrupt ends a kubectl that waits
	run.Printed = c.printed
	var broken error
	run.Stream(func(e *engine.Engine) bool {
		if broken == nil {
			broken = out.tell(e, false)
		}
		return ctx.Err() == nil && broken == nil
	})
	if err := exercises.PlayStory(run, faults); err != nil && ctx.Err() == nil {
		return usage("%v", err)
	}
	verdict := run.Settle(run.Deadline())
	switch {
	case ctx.Err() != nil:
		return exitCode(130)
	case broken != nil:
		return broken
	}
	return run.Engine(func(e *engine.Engine) error {
		if err := out.tell(e, true); err != nil {
			return err
		}
		return c.printVerdict(o.output, e, verdict)
	})
}

// printed shows what a command said that only looks; what others did is in the hops.
func (c *command) printed(line string, out engine.Output) {
	if !kubectl.Changes(line) {
		fmt.Fprintf(c.stderr, "$ %s\n%s%s", line, out.Stdout, out.Stderr)
	}
}

// story is what shall happen: the given commands and manifests, else the first fault's
// own scenario, else the default.
func (c *command) story(o traceOptions) (scenario.Scenario, []exercises.Fault, error) {
	var faults []exercises.Fault
	for _, id := range o.faults {
		f, err := exercises.FaultByID(id)
		if err != nil {
			return scenario.Scenario{}, nil, usage("%v", err)
		}
		faults = append(faults, f)
	}
	s := scenario.Scenario{Cluster: scenario.Default()}
	for _, name := range o.files {
		text, err := c.readManifest(name)
		if err != nil {
			return s, nil, err
		}
		s.Steps = append(s.Steps, scenario.Step{Apply: text})
	}
	for _, line := range o.runs {
		if words := strings.Fields(line); len(words) == 0 || len(words) == 1 && (words[0] == "kubectl" || words[0] == "k") {
			return s, nil, usage("--run %q: a command is missing, such as --run %q", line, storyDefault)
		}
		s.Steps = append(s.Steps, scenario.Step{Kubectl: line})
	}
	switch {
	case len(s.Steps) > 0:
	case len(faults) > 0:
		s = faults[0].Scenario
	default:
		s.Steps = []scenario.Step{{Kubectl: storyDefault}}
	}
	if o.deadline > 0 {
		s.Deadline = scenario.Duration(o.deadline)
	}
	return s, faults, nil
}

// hopWriter writes the hops of a run while it goes on.
type hopWriter struct {
	story trace.Follower
	write func(hops []trace.Hop, e *engine.Engine) error
	// whole formats can be written only at the end.
	whole bool
}

func (c *command) hopWriter(format string) (*hopWriter, error) {
	switch format {
	case "json":
		return &hopWriter{write: func(hops []trace.Hop, e *engine.Engine) error { return trace.WriteJSON(c.stdout, hops, e.Origin()) }}, nil
	case "mermaid":
		return &hopWriter{whole: true, write: func(hops []trace.Hop, e *engine.Engine) error {
			return trace.WriteMermaid(c.stdout, hops, e.Origin())
		}}, nil
	case "text":
		return &hopWriter{write: func(hops []trace.Hop, e *engine.Engine) error {
			var b strings.Builder
			for _, h := range hops {
				b.WriteString(h.Line(e.Origin()) + "\n")
			}
			_, err := c.stdout.Write([]byte(b.String()))
			return err
		}}, nil
	}
	return nil, usage("-o takes text, json or mermaid, not %q", format)
}

// tell writes the hops that have come since it was called last.
func (w *hopWriter) tell(e *engine.Engine, end bool) error {
	if w.whole && !end {
		return nil
	}
	hops := w.story.Next(e.Trace())
	if len(hops) == 0 && !w.whole {
		return nil
	}
	return w.write(hops, e)
}

func (c *command) printVerdict(format string, e *engine.Engine, v engine.Verdict) error {
	if err := e.Err(); err != nil {
		// There is no verdict on a run that was cut short.
		return usage("stopped after %s of simulated time: %v; ask for fewer Pods or a shorter --deadline", e.Elapsed().Round(time.Second), err)
	}
	last := c.stdout
	if format != "text" {
		last = c.stderr // stdout is for the program that reads it
	}
	for _, ref := range e.Inert() {
		fmt.Fprintln(c.stderr, c.words().T("trace.inert", "kind", ref.Kind, "name", ref.Name))
	}
	if v.Ready {
		fmt.Fprintln(last, "ready")
		return nil
	}
	fmt.Fprintln(last, "failed at: "+trace.Printable(v.String()))
	return exitCode(1)
}
