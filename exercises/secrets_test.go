package exercises_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"podwalk/assets"
	"podwalk/engine/stage"
	"podwalk/exercises"
)

// titles are a stage's or a step's names on the screen, in a language.
type titles struct {
	Stage map[stage.ID]label   `json:"stage"`
	Step  map[stage.Step]label `json:"step"`
}

type label struct{ Long, Short string }

func titlesIn(t *testing.T, lang string) titles {
	t.Helper()
	data, err := assets.FS.ReadFile("i18n/" + lang + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out titles
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// names reports whether a text names a thing: in English as words, in Chinese anywhere.
func names(text, lang, thing string) bool {
	if thing == "" {
		return false
	}
	if lang == "en" || regexp.MustCompile(`^[\w -]+$`).MatchString(thing) {
		return regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(thing) + `\b`).MatchString(text)
	}
	return strings.Contains(text, thing)
}

// TestAnswerIsNotGivenAway: what is read before the answer names no stage at which a
// variant may fail; only the last hint may come as near as the step.
func TestAnswerIsNotGivenAway(t *testing.T) {
	each(t, exercises.Identify, func(t *testing.T, x exercises.Exercise) {
		for _, lang := range langs {
			called := titlesIn(t, lang)
			read := map[string]string{"title": x.Title.In(lang), "prompt": x.Prompt.In(lang)}
			for i, h := range x.Hints {
				read[fmt.Sprintf("hint %d", i+1)] = h.In(lang)
			}
			for _, id := range x.Faults {
				f := fault(t, id)
				l := called.Stage[f.Stage]
				secret := []string{string(f.Stage), strings.ReplaceAll(string(f.Stage), "-", " "), l.Long, l.Short, f.ID, f.Title.In(lang)}
				step := called.Step[stage.StepOf(f.Stage)]
				for where, text := range read {
					for _, s := range secret {
						if names(text, lang, s) {
							t.Errorf("%s: the %s (%s) names %q: %s", x.ID, where, lang, s, text)
						}
					}
					if where != "hint 3" && (names(text, lang, step.Long) || names(text, lang, step.Short)) {
						t.Errorf("%s: the %s (%s) names the step %q: %s", x.ID, where, lang, step.Long, text)
					}
				}
			}
		}
	})
}

// TestSolutionIsNotGivenAway: an inject exercise names the symptom, not the fault that
// solves it.
func TestSolutionIsNotGivenAway(t *testing.T) {
	each(t, exercises.Inject, func(t *testing.T, x exercises.Exercise) {
		for _, lang := range langs {
			for _, id := range x.Solution {
				for _, secret := range []string{id, fault(t, id).Title.In(lang)} {
					for _, text := range append([]string{x.Title.In(lang), x.Prompt.In(lang)}, x.Hints[0].In(lang), x.Hints[1].In(lang), x.Hints[2].In(lang)) {
						if names(text, lang, secret) {
							t.Errorf("%s (%s) names %q: %s", x.ID, lang, secret, text)
						}
					}
				}
			}
		}
	})
}

// TestNoPipesInTexts: the prompt runs kubectl alone, so no text tells to pipe it somewhere.
func TestNoPipesInTexts(t *testing.T) {
	faults, err := exercises.Faults()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		for lang, text := range map[string]string{"en": f.Look.In("en") + f.Remedy.In("en"), "zh-TW": f.Look.In("zh-TW") + f.Remedy.In("zh-TW")} {
			if strings.Contains(text, " | ") {
				t.Errorf("%s (%s): %s", f.ID, lang, text)
			}
		}
	}
}
