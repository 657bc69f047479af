package scenario_test

import (
	"strings"
	"testing"

	"podwalk/engine/scenario"
)

// TestDocuments: a file is the objects that kubectl takes it for.
func TestDocuments(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %}\n"
	named := func(n string) string { return strings.ReplaceAll(pod, "%", n) }
	js := func(n string) string { return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + n + `"}}` }
	for name, c := range map[string]struct{ file, want string }{
		"YAML":                   {named("a") + "---\n# nothing\n---\n" + named("b"), "document 1 Pod a, document 2 Pod b"},
		"JSON objects":           {js("a") + "\n\t" + js("b"), "document 1 Pod a, document 2 Pod b"},
		"JSON between dashes":    {js("a") + "\n---\n" + js("b") + "\n---\n" + js("c"), "document 1 Pod a, document 2 Pod b, document 3 Pod c"},
		"YAML in braces":         {"{apiVersion: v1, kind: Pod, metadata: {name: a}}", "document 1 Pod a"},
		"a List":                 {"apiVersion: v1\nkind: List\nitems:\n- " + js("a") + "\n- " + js("b"), "document 1, items[0] Pod a, document 1, items[1] Pod b"},
		"a list of one kind":     {"apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n", "document 1, items[0] Pod a"},
		"a document that begins": {"---\n" + named("a"), "document 1 Pod a"},
	} {
		docs, err := scenario.Documents([]byte(c.file))
		var got []string
		for _, d := range docs {
			got = append(got, d.Where()+" "+d.Kind+" "+d.Name)
		}
		if have := strings.Join(got, ", "); err != nil || have != c.want {
			t.Errorf("%s: it is %s (%v), want %s", name, have, err, c.want)
		}
	}
}

// TestBadDocuments: an error names the document and the item, says what is wrong there and
// speaks of manifests, not of Go.
func TestBadDocuments(t *testing.T) {
	good := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n"
	for _, c := range []struct{ name, file, want string }{
		{"a string", good + "hello", "document 2: this is a string, not an object with apiVersion and kind"},
		{"a number", "42", "document 1: this is a number, not an object"},
		{"a list", "- a\n- b\n", "document 1: this is a list, not an object"},
		{"true", "true", "document 1: this is true or false, not an object"},
		{"kind is a number", "apiVersion: v1\nkind: 5\n", "document 1: kind is a number, not a string"},
		{"both are numbers", "apiVersion: 1\nkind: 5\n", "document 1: apiVersion is a number, not a string"},
		{"name is a number", "apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n", "document 1: metadata.name is a number, not a string; write it in quotes"},
		{"metadata", "apiVersion: v1\nkind: Pod\nmetadata: 5\n", "document 1: metadata is a number, not an object"},
		{"no kind", "apiVersion: v1\nmetadata: {name: a}\n", "document 1: kind is missing"},
		{"no version", "kind: Pod\n", "document 1: apiVersion is missing"},
		{"items", "apiVersion: v1\nkind: List\nitems: hello\n", "document 1: items is a string, not a list of objects"},
		{"an item", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- 5\n", "document 1: items[1]: this is a number, not an object"},
		{"an empty item", "apiVersion: v1\nkind: List\nitems: [null]\n", "document 1: items[0]: this is null, not an object"},
		{"an item without kind", "apiVersion: v1\nkind: List\nitems: [{metadata: {name: a}}]\n", "document 1: items[0]: kind is missing"},
		{"a List in a List", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}]\n", "items[0]: this is a List inside of a List"},
		{"no items", "apiVersion: v1\nkind: List\n", "there is no object in it"},
		{"a key twice", good + "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n", `document 2: yaml: line 5: key "name" already set in map`},
		{"a key twice in JSON", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"}}`, `document 1: duplicate field "metadata.name"`},
		{"bad JSON", `{"apiVersion":"v1"}` + "\n" + `{"apiVersion":"v1",` + "\n" + `"kind"]`, "document 2: json: line 3: invalid character ']'"},
		{"half of a JSON object", `{"apiVersion":"v1",`, "document 1: json: line 1: the file ends in the middle of an object"},
		{"text after the end", "apiVersion: v1\nkind: Pod\n...\nhello: x\n", "document 1: there is text after the end of the object (yaml: line 3"},
	} {
		_, err := scenario.Documents([]byte(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: it says %v, want %s", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: it speaks of Go: %v", c.name, err)
		}
	}
}
