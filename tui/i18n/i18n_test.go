package i18n

import (
	"regexp"
	"slices"
	"testing"

	"podwalk/assets"
	"podwalk/engine/stage"
	"podwalk/tui/text"
)

func load(t *testing.T) *Bundle {
	t.Helper()
	b, err := Load(assets.FS)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBothLanguagesHaveEveryKey(t *testing.T) {
	b := load(t)
	en, zh := b.In(English), b.In(Chinese)
	hole := regexp.MustCompile(`\{\w+\}`)
	for _, k := range en.Keys() {
		if !zh.Has(k) {
			t.Errorf("zh-TW lacks %s", k)
			continue
		}
		a, b := hole.FindAllString(en.T(k), -1), hole.FindAllString(zh.T(k), -1)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("%s: placeholders %v and %v", k, a, b)
		}
	}
	for _, k := range zh.Keys() {
		if !en.Has(k) {
			t.Errorf("en lacks %s", k)
		}
	}
}

func TestEveryStageAndStepHasItsWords(t *testing.T) {
	b := load(t)
	for _, l := range Langs() {
		c := b.In(l)
		for _, s := range stage.All() {
			for _, part := range []string{"long", "short", "story", "bad"} {
				if !c.Has("stage." + string(s.ID) + "." + part) {
					t.Errorf("%s: stage %s has no %s", l, s.ID, part)
				}
			}
			if w := text.Width(c.StageShort(s.ID)); w > 8 {
				t.Errorf("%s: short label of %s is %d wide", l, s.ID, w)
			}
		}
		for _, s := range stage.Steps() {
			if !c.Has("step." + string(s) + ".long") {
				t.Errorf("%s: step %s has no label", l, s)
			}
			if w := text.Width(c.StepShort(s)); w > 8 {
				t.Errorf("%s: short label of step %s is %d wide", l, s, w)
			}
		}
	}
}

func TestTaiwanUsage(t *testing.T) {
	c := load(t).In(Chinese)
	avoid := regexp.MustCompile(`集群|節点|結點|調度|鏡像|倉庫|運行|緩存|網絡|創建|默認|字段|接口|進程|文檔|命令行|客戶端|服務器|賬號|隊列|探針|策略|信息|消息|恢復|認證|鑑權|令牌|證書|組件|支持|對象`)
	for _, k := range c.Keys() {
		if m := avoid.FindString(c.T(k)); m != "" {
			t.Errorf("%s says %s", k, m)
		}
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]Lang{"zh_TW.UTF-8": Chinese, "en_US.UTF-8": English, "zh": Chinese, "C": English, "zh-Hant-TW": Chinese} {
		if got, ok := Parse(in); got != want || !ok {
			t.Errorf("Parse(%q) = %q, %v", in, got, ok)
		}
	}
	if _, ok := Parse("klingon"); ok {
		t.Error("klingon")
	}
}
