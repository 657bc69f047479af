// Package config reads the settings: flags over PODWALK_* variables over the config
// file over defaults. Viper does the reading; what comes out is a plain struct, and for
// each setting where it came from. Nothing is written unasked.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/viper"
	"sigs.k8s.io/yaml"

	"podwalk/tui/i18n"
)

// Config is every setting.
type Config struct {
	Lang          i18n.Lang
	Theme         string
	ASCII         bool
	Speed         float64
	ReducedMotion bool
	Plain         bool
	Seed          uint64

	File    string            // the config file, "" if there is none
	Origins map[string]string // by key: "flag", "PODWALK_LANG", the file, "locale", "default"
}

// Key is one setting.
type Key struct {
	Name    string
	Default any
	Values  string // what is allowed, for messages
}

// Keys returns every setting, in the order in which they are listed.
func Keys() []Key {
	return []Key{
		{"lang", "", "en, zh-TW"},
		{"theme", "auto", "auto or the name of a theme"},
		{"glyphs", "unicode", "unicode, ascii"},
		{"speed", 1.0, "0.25 to 8"},
		{"motion", "full", "full, reduced"},
		{"plain", false, "true, false"},
		{"seed", uint64(1), "a number"},
	}
}

// Source is where settings come from.
type Source struct {
	Flags map[string]string // those that were given
	Env   []string          // NAME=VALUE
	Read  func(path string) ([]byte, error)
}

// Getenv looks a variable up.
func (s Source) Getenv(name string) string {
	for i := len(s.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(s.Env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Path returns where the config file is: --config, $PODWALK_CONFIG, the XDG config
// directory, ~/.config. must says that it was named by the user and has to exist.
func (s Source) Path() (path string, must bool) {
	if p := s.Flags["config"]; p != "" {
		return p, true
	}
	if p := s.Getenv("PODWALK_CONFIG"); p != "" {
		return p, true
	}
	if d := s.Getenv("XDG_CONFIG_HOME"); d != "" {
		return filepath.Join(d, "podwalk", "config.yaml"), false
	}
	if h := s.Getenv("HOME"); h != "" {
		return filepath.Join(h, ".config", "podwalk", "config.yaml"), false
	}
	if d, err := os.UserConfigDir(); err == nil {
		return filepath.Join(d, "podwalk", "config.yaml"), false
	}
	return "", false
}

// Load reads all settings.
func Load(s Source) (Config, error) {
	v := viper.New()
	c := Config{Origins: map[string]string{}}
	for _, k := range Keys() {
		v.SetDefault(k.Name, k.Default)
		c.Origins[k.Name] = "default"
	}
	if err := c.readFile(s, v); err != nil {
		return c, err
	}
	if err := c.override(s, v); err != nil {
		return c, err
	}
	return c, c.fill(s, v)
}

func (c *Config) readFile(s Source, v *viper.Viper) error {
	path, must := s.Path()
	if path == "" || s.Read == nil {
		return nil
	}
	data, err := s.Read(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		return fmt.Errorf("config file: %w", err)
	}
	var tree map[string]any
	if err := yaml.UnmarshalStrict(data, &tree); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	names := make([]string, 0, len(tree))
	for k := range tree {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		if !known(k) {
			return fmt.Errorf("config file %s: unknown setting %q%s", path, k, suggestion(k))
		}
		switch tree[k].(type) {
		case []any, map[string]any:
			return fmt.Errorf("config file %s: setting %s takes one value (%s), not a list or an object", path, k, values(k))
		case nil:
			return fmt.Errorf("config file %s: setting %s has no value; it takes %s", path, k, values(k))
		}
		c.Origins[k] = path
	}
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	c.File = path
	return nil
}

func (c *Config) override(s Source, v *viper.Viper) error {
	for _, kv := range s.Env {
		name, val, _ := strings.Cut(kv, "=")
		rest, ok := strings.CutPrefix(name, "PODWALK_")
		if !ok || rest == "CONFIG" {
			continue
		}
		k := strings.ReplaceAll(strings.ToLower(rest), "_", "-")
		if !known(k) {
			continue // other variables of podwalk's own: PODWALK_LISTEN and the like
		}
		v.Set(k, val)
		c.Origins[k] = name
	}
	if s.Getenv("ACCESSIBLE") != "" && c.Origins["plain"] == "default" {
		v.Set("plain", "true")
		c.Origins["plain"] = "ACCESSIBLE"
	}
	for k, val := range s.Flags {
		if known(k) {
			v.Set(k, val)
			c.Origins[k] = "flag"
		}
	}
	return nil
}

func (c *Config) fill(s Source, v *viper.Viper) error {
	bad := func(key string) error {
		return fmt.Errorf("setting %s (from %s): %q is not one of: %s", key, c.Origins[key], v.GetString(key), values(key))
	}
	if l := v.GetString("lang"); l != "" {
		lang, ok := i18n.Parse(l)
		if !ok {
			return bad("lang")
		}
		c.Lang = lang
	} else {
		c.Lang, c.Origins["lang"] = Locale(s)
	}
	c.Theme = v.GetString("theme")
	switch v.GetString("glyphs") {
	case "ascii":
		c.ASCII = true
	case "unicode":
	default:
		return bad("glyphs")
	}
	switch v.GetString("motion") {
	case "reduced":
		c.ReducedMotion = true
	case "full":
	default:
		return bad("motion")
	}
	var err error
	if c.Speed, err = strconv.ParseFloat(v.GetString("speed"), 64); err != nil || c.Speed < 0.25 || c.Speed > 8 {
		return bad("speed")
	}
	if c.Plain, err = strconv.ParseBool(v.GetString("plain")); err != nil {
		return bad("plain")
	}
	if c.Seed, err = strconv.ParseUint(v.GetString("seed"), 10, 64); err != nil {
		return bad("seed")
	}
	return nil
}

// Locale returns the language of the environment, and which variable said so.
func Locale(s Source) (lang i18n.Lang, origin string) {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if val := s.Getenv(name); val != "" {
			if l, ok := i18n.Parse(val); ok {
				return l, "locale"
			}
			return i18n.English, "default"
		}
	}
	return i18n.English, "default"
}

func known(k string) bool {
	for _, key := range Keys() {
		if key.Name == k {
			return true
		}
	}
	return false
}

// values are what a setting may be, in words.
func values(name string) string {
	for _, k := range Keys() {
		if k.Name == name {
			return k.Values
		}
	}
	return ""
}

// suggestion returns `, did you mean "theme"?` where a known key is near.
func suggestion(k string) string {
	best, bestD := "", 3
	for _, key := range Keys() {
		if d := distance(k, key.Name); d < bestD {
			best, bestD = key.Name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost = 1 + min(prev, row[j], row[j+1])
			}
			prev, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
