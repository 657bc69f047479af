package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"podwalk/engine/stage"
	"podwalk/exercises"
	"podwalk/lessons"
)

// list makes a command that prints rows as a table or, with -o json, as one array.
func list[T any](c *command, use, short string, load func() ([]T, error), columns []string, cells func(T) []string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			rows, err := load()
			if err != nil {
				return err
			}
			switch output {
			case "json":
				return c.printJSON(rows)
			case "table":
			default:
				return usage("-o takes table or json, not %q", output)
			}
			w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
			printRow(w, columns)
			for _, r := range rows {
				printRow(w, cells(r))
			}
			return w.Flush()
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func printRow(w *tabwriter.Writer, cells []string) {
	for i, s := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, s)
	}
	fmt.Fprintln(w)
}

func (c *command) printJSON(v any) error {
	enc := json.NewEncoder(c.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

type stageRow struct {
	ID        stage.ID        `json:"id"`
	Step      stage.Step      `json:"step"`
	Component stage.Component `json:"component"`
	Title     string          `json:"title"`
}

func (c *command) stages() *cobra.Command {
	return list(c, "stages", "the stages of a Pod's way", func() ([]stageRow, error) {
		var rows []stageRow
		for _, s := range stage.All() {
			rows = append(rows, stageRow{s.ID, s.Step, s.Component, c.words().Stage(s.ID)})
		}
		return rows, nil
	}, []string{"STEP", "ID", "COMPONENT", "TITLE"}, func(r stageRow) []string {
		return []string{string(r.Step), string(r.ID), string(r.Component), r.Title}
	})
}

type lessonRow struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Minutes int    `json:"minutes"`
}

func (c *command) lessons() *cobra.Command {
	return list(c, "lessons", "the lessons", func() ([]lessonRow, error) {
		all, err := lessons.All()
		if err != nil {
			return nil, err
		}
		rows := []lessonRow{}
		for _, l := range all {
			rows = append(rows, lessonRow{l.ID, l.Title(c.lang()), l.Minutes})
		}
		return rows, nil
	}, []string{"ID", "MINUTES", "TITLE"}, func(r lessonRow) []string {
		return []string{r.ID, strconv.Itoa(r.Minutes), r.Title}
	})
}

type exerciseRow struct {
	ID         string   `json:"id"`
	Kind       string   `json:"kind"`
	Stage      stage.ID `json:"stage"`
	Difficulty int      `json:"difficulty"`
	Domains    []string `json:"domains"`
	Title      string   `json:"title"`
}

func (c *command) exercises() *cobra.Command {
	return list(c, "exercises", "the exercises", func() ([]exerciseRow, error) {
		all, err := exercises.Exercises()
		if err != nil {
			return nil, err
		}
		rows := []exerciseRow{}
		for _, x := range all {
			at, err := x.Stage()
			if err != nil {
				return nil, err
			}
			rows = append(rows, exerciseRow{x.ID, x.Kind, at, x.Difficulty, x.Domains, x.Title.In(c.lang())})
		}
		return rows, nil
	}, []string{"ID", "KIND", "LEVEL", "TITLE"}, func(r exerciseRow) []string {
		return []string{r.ID, r.Kind, strconv.Itoa(r.Difficulty), r.Title}
	})
}

type faultRow struct {
	ID      string     `json:"id"`
	Step    stage.Step `json:"step"`
	Stage   stage.ID   `json:"stage"`
	Verdict string     `json:"verdict"`
	Title   string     `json:"title"`
	Symptom string     `json:"symptom"`
}

func (c *command) faults() *cobra.Command {
	return list(c, "faults", "the faults that can be injected", func() ([]faultRow, error) {
		all, err := exercises.Faults()
		if err != nil {
			return nil, err
		}
		rows := []faultRow{}
		for _, f := range all {
			rows = append(rows, faultRow{f.ID, stage.StepOf(f.Stage), f.Stage, f.Verdict, f.Title.In(c.lang()), f.Symptom.In(c.lang())})
		}
		return rows, nil
	}, []string{"STEP", "STAGE", "ID", "TITLE"}, func(r faultRow) []string {
		return []string{string(r.Step), string(r.Stage), r.ID, r.Title}
	})
}
