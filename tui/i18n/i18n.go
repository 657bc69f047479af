// Package i18n finds words. The catalogues (assets/i18n) hold every word that podwalk
// says itself, in English and in Traditional Chinese; what Kubernetes says stays as it
// is. The engine emits ids and literal reasons; this package turns them into sentences.
package i18n

import (
	"fmt"
	"io/fs"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"

	"podwalk/engine/stage"
)

// Lang names a language.
type Lang string

// The languages.
const (
	English Lang = "en"
	Chinese Lang = "zh-TW"
)

// Langs returns all languages, the default first.
func Langs() []Lang { return []Lang{English, Chinese} }

// Parse understands what people write for a language: "en", "zh", "zh_TW.UTF-8",
// "zh-Hant". The second result is false for anything else.
func Parse(s string) (Lang, bool) {
	s, _, _ = strings.Cut(strings.ToLower(strings.ReplaceAll(s, "_", "-")), ".")
	switch {
	case s == "en" || strings.HasPrefix(s, "en-") || s == "c" || s == "posix":
		return English, true
	case s == "zh" || strings.HasPrefix(s, "zh-"):
		return Chinese, true
	}
	return English, false
}

// Bundle holds every catalogue.
type Bundle struct{ cats map[Lang]*Catalog }

// Catalog is one language's words.
type Catalog struct {
	Lang  Lang
	words map[string]string
}

// Load reads the catalogues.
func Load(assets fs.FS) (*Bundle, error) {
	b := &Bundle{cats: map[Lang]*Catalog{}}
	for _, l := range Langs() {
		data, err := fs.ReadFile(assets, "i18n/"+string(l)+".yaml")
		if err != nil {
			return nil, err
		}
		var tree map[string]any
		if err := yaml.UnmarshalStrict(data, &tree); err != nil {
			return nil, fmt.Errorf("i18n/%s.yaml: %w", l, err)
		}
		c := &Catalog{Lang: l, words: map[string]string{}}
		if err := flatten("", tree, c.words); err != nil {
			return nil, fmt.Errorf("i18n/%s.yaml: %w", l, err)
		}
		b.cats[l] = c
	}
	return b, nil
}

func flatten(prefix string, tree map[string]any, out map[string]string) error {
	for k, v := range tree {
		key := prefix + k
		if k == "true" || k == "false" {
			return fmt.Errorf("%s: on, off, yes and no are truth values in YAML: put the key in quotes", key)
		}
		switch v := v.(type) {
		case string:
			out[key] = v
		case map[string]any:
			if err := flatten(key+".", v, out); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is %T, want text: put it in quotes", key, v)
		}
	}
	return nil
}

// In returns the catalogue of a language, English for an unknown one.
func (b *Bundle) In(l Lang) *Catalog {
	if c, ok := b.cats[l]; ok {
		return c
	}
	return b.cats[English]
}

// Other returns the language after l.
func Other(l Lang) Lang {
	if l == English {
		return Chinese
	}
	return English
}

// Keys returns every key, sorted.
func (c *Catalog) Keys() []string {
	out := make([]string, 0, len(c.words))
	for k := range c.words {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// Has reports whether there is a text for key.
func (c *Catalog) Has(key string) bool { _, ok := c.words[key]; return ok }

// T returns the text of a key, with {name} replaced by the value that follows "name" in
// kv. A key without text comes out as the key itself: a test sees to it that there is
// none.
func (c *Catalog) T(key string, kv ...any) string {
	s, ok := c.words[key]
	if !ok {
		return key
	}
	for i := 0; i+1 < len(kv); i += 2 {
		s = strings.ReplaceAll(s, "{"+fmt.Sprint(kv[i])+"}", fmt.Sprint(kv[i+1]))
	}
	return s
}

// Step returns a badge's label.
func (c *Catalog) Step(s stage.Step) string { return c.T("step." + string(s) + ".long") }

// StepShort returns a badge's label in at most 8 cells.
func (c *Catalog) StepShort(s stage.Step) string { return c.T("step." + string(s) + ".short") }

// Stage returns a stage's label.
func (c *Catalog) Stage(id stage.ID) string { return c.T("stage." + string(id) + ".long") }

// StageShort returns a stage's label in at most 8 cells.
func (c *Catalog) StageShort(id stage.ID) string { return c.T("stage." + string(id) + ".short") }

// Story returns what happens at a stage, in two or three sentences.
func (c *Catalog) Story(id stage.ID) string { return c.T("stage." + string(id) + ".story") }

// Trouble returns what it means when a stage fails and where to look first.
func (c *Catalog) Trouble(id stage.ID) string { return c.T("stage." + string(id) + ".bad") }

// Reason explains a reason code of Kubernetes in a sentence, "" for an unknown one.
func (c *Catalog) Reason(code string) string {
	if k := "reason." + code; c.Has(k) {
		return c.T(k)
	}
	return ""
}
