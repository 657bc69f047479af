package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"podwalk/engine"
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
		RunE: func(*cobra.Command, []string) error { return c.runTrace(o) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "manifest to create (- for standard input); may be repeated")
	f.StringArrayVar(&o.runs, "run", nil, "kubectl command line to run; may be repeated")
	f.StringArrayVar(&o.faults, "fault", nil, "fault to inject; may be repeated")
	f.StringVarP(&o.output, "output", "o", "text", "text, json or mermaid")
	f.DurationVar(&o.deadline, "deadline", 0, "virtual time until all must be well (10m)")
	return cmd
}

func (c *command) runTrace(o traceOptions) error {
	switch o.output {
	case "text", "json", "mermaid":
	default:
		return usage("-o takes text, json or mermaid, not %q", o.output)
	}
	story, faults, err := c.story(o)
	if err != nil {
		return err
	}
	run, err := engine.StartRun(story, c.newKubectl)
	if err != nil {
		return err
	}
	defer run.Close()
	verdict, err := exercises.PlayWith(run, faults)
	if err != nil {
		return err
	}
	return run.Engine(func(e *engine.Engine) error { return c.printTrace(o.output, e, verdict) })
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

// readManifest reads a file and checks it as far as kubectl would, so that the error
// names the file and the document.
func (c *command) readManifest(name string) (string, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(c.stdin, 4<<20))
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return "", usage("%v", err)
	}
	if err := engine.CheckManifest(data); err != nil {
		return "", usage("%s: %v", name, err)
	}
	return string(data), nil
}

func (c *command) printTrace(format string, e *engine.Engine, v engine.Verdict) error {
	hops := e.Trace().Story()
	var err error
	switch format {
	case "json":
		err = trace.WriteJSON(c.stdout, hops, e.Origin())
	case "mermaid":
		err = trace.WriteMermaid(c.stdout, hops, e.Origin())
	default:
		for _, h := range hops {
			if _, err = fmt.Fprintln(c.stdout, h.Line(e.Origin())); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	last := c.stdout
	if format != "text" {
		last = c.stderr // stdout is for the program that reads it
	}
	for _, ref := range e.Inert() {
		fmt.Fprintf(c.stderr, "note: %s %s is stored, but nothing in this simulation acts on a %[1]s yet\n", ref.Kind, ref.Name)
	}
	if v.Ready {
		fmt.Fprintln(last, "ready")
		return nil
	}
	fmt.Fprintln(last, "failed at: "+v.String())
	return exitCode(1)
}
