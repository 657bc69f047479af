package scenario_test

import (
	"testing"

	"podwalk/engine/scenario"
)

// FuzzDocuments: whatever a manifest file holds, it is taken apart or refused.
func FuzzDocuments(f *testing.F) {
	for _, s := range []string{
		"", "---\n---\n", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", "a: [", "\x00", "kind: 3", "- 1\n- 2\n",
		"apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: List\nitems: []\n", "{\"kind\":{}}", "&a [*a]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := scenario.Documents(data)
		if err == nil && len(docs) == 0 {
			t.Error("no document and no error")
		}
		for i, d := range docs {
			if d.Index < 1 || d.Kind == "" || d.APIVersion == "" {
				t.Errorf("document %d: %+v", i+1, d)
			}
		}
	})
}

// FuzzParse: a scenario file is decoded strictly or refused.
func FuzzParse(f *testing.F) {
	f.Add([]byte("steps: [{advance: 5s}]"))
	f.Add([]byte("cluster: {nodes: [{name: a}, {name: a}]}"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = scenario.Parse(data) })
}
