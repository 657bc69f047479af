// Command gallery shows the tutor over recorded runs, without an engine: to look at the
// screens while working on them.
//
//	go run ./tui/tuitest/gallery -open happy -lang zh-TW -theme light
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	"podwalk/assets"
	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
	"podwalk/tui/progress"
	"podwalk/tui/session"
	"podwalk/tui/tuitest"
)

func main() {
	kubectl.ChildMain()
	open := flag.String("open", "", "happy, notag, noroom, refused, deployment, lesson, identify")
	lang := flag.String("lang", "en", "language")
	name := flag.String("theme", "dark", "theme")
	ascii := flag.Bool("ascii", false, "ASCII glyphs")
	first := flag.Bool("first", false, "as on the first start")
	file := flag.String("f", "", "a manifest: play it on the engine instead of a recorded run")
	whole := flag.Bool("real", false, "real lessons, drills and sandbox instead of recorded runs")
	flag.Parse()
	var prog app.Program = &tuitest.Program{}
	if *whole {
		store, _ := progress.Open("")
		prog = &session.Program{NewShell: shell, Progress: store, Seed: 1, Wall: time.Now}
	}
	l, _ := i18n.Parse(*lang)
	m, err := app.New(app.Options{
		Assets: assets.FS, Renderer: lipgloss.NewRenderer(os.Stdout), Program: prog, Open: *open, Local: true,
		Settings: app.Settings{Lang: l, LangChosen: !*first, Theme: *name, ASCII: *ascii, Speed: 1},
	})
	if err == nil && *file != "" {
		err = live(m, *file)
	}
	if err == nil {
		_, err = tea.NewProgram(m, tea.WithAltScreen(), tea.WithFPS(30)).Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func shell(t *engine.Timeline, namespace string) (engine.Shell, error) {
	return kubectl.Over(t.Outside(), kubectl.Config{Namespace: namespace, Client: stage.Kubectl})
}

// live plays a manifest on a simulated cluster.
func live(m *app.Model, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r, err := engine.StartRun(scenario.Scenario{}, nil)
	if err != nil {
		return err
	}
	if err := r.Play([]scenario.Step{{Apply: string(data)}}); err != nil {
		return err
	}
	m.Start(session.Play("sandbox", r, scenario.Text{"en": file, "zh-TW": file}))
	return nil
}
