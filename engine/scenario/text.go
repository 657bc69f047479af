package scenario

import (
	"fmt"
	"sort"
	"strings"
)

// Languages are those in which every text must exist; the first is the fallback.
var Languages = []string{"en", "zh-TW"}

// Text is the same words in every language.
type Text map[string]string

// In returns the text in a language, in the fallback language where it is missing.
func (t Text) In(lang string) string {
	if s, ok := t[lang]; ok {
		return s
	}
	return t[Languages[0]]
}

// Check reports a language that is missing, empty or unknown.
func (t Text) Check(what string) error {
	for _, l := range Languages {
		if strings.TrimSpace(t[l]) == "" {
			return fmt.Errorf("%s has no text in %s", what, l)
		}
	}
	if len(t) != len(Languages) {
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		return fmt.Errorf("%s has texts in %s; known are %s", what, strings.Join(keys, ", "), strings.Join(Languages, ", "))
	}
	return nil
}
