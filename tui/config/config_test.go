package config

import (
	"io/fs"
	"strings"
	"testing"

	"podwalk/tui/i18n"
)

func source(file string, env []string, flags map[string]string) Source {
	return Source{Flags: flags, Env: append([]string{"HOME=/h"}, env...), Read: func(p string) ([]byte, error) {
		if p == "/h/.config/podwalk/config.yaml" && file != "" {
			return []byte(file), nil
		}
		return nil, fs.ErrNotExist
	}}
}

func TestPrecedence(t *testing.T) {
	file := "lang: zh-TW\ntheme: light\nspeed: 2\n"
	c, err := Load(source(file, []string{"PODWALK_THEME=mono", "LANG=de_DE.UTF-8"}, map[string]string{"speed": "4"}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Lang != i18n.Chinese || c.Theme != "mono" || c.Speed != 4 {
		t.Errorf("got %+v", c)
	}
	if c.Origins["theme"] != "PODWALK_THEME" || c.Origins["speed"] != "flag" || !strings.HasSuffix(c.Origins["lang"], "config.yaml") || c.Origins["seed"] != "default" {
		t.Errorf("origins %v", c.Origins)
	}
}

func TestLocale(t *testing.T) {
	c, err := Load(source("", []string{"LANG=zh_TW.UTF-8"}, nil))
	if err != nil || c.Lang != i18n.Chinese || c.Origins["lang"] != "locale" {
		t.Errorf("%v %v %v", c.Lang, c.Origins["lang"], err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"tehme: dark":    `unknown setting "tehme", did you mean "theme"?`,
		"lang: klingon":  `"klingon" is not one of: en, zh-TW`,
		"speed: 100":     "0.25 to 8",
		"glyphs: [emoji": "config.yaml",
		"speed: [1]":     "config.yaml: setting speed takes one value (0.25 to 8), not a list",
		"theme: {a: b}":  "setting theme takes one value",
		"lang:":          "setting lang has no value; it takes en, zh-TW",
		"- a":            "config.yaml",
	} {
		_, err := Load(source(file, nil, nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", file, err)
		}
	}
	if _, err := Load(source("", nil, map[string]string{"config": "/no/such"})); err == nil {
		t.Error("a config file that was named must exist")
	}
}
