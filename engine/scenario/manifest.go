package scenario

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Document is one object of a manifest file.
type Document struct {
	Index int // of its document: 1, 2, 3 …
	// Item is its place in a List, such as "items[2]"; "" where the document is no List.
	Item string
	JSON []byte
	Kind string
	Name string
	// Namespace as written, "" where it is not.
	Namespace string
	// APIVersion as written.
	APIVersion string
}

// Where says which object of the file it is: "document 2", "document 1, items[3]".
func (d Document) Where() string {
	s := fmt.Sprintf("document %d", d.Index)
	if d.Item != "" {
		s += ", " + d.Item
	}
	return s
}

// ManifestMax bounds a manifest file: a real API server refuses requests over 3 MiB.
const ManifestMax = 3 << 20

// Documents splits a manifest file into its objects, as kubectl does (YAML documents or
// a stream of JSON objects; a List is its items), and checks that each one is an object
// with apiVersion and kind. Errors name the document. What kubectl would lose in silence
// is an error: a key that is there twice, text after the end of a document.
func Documents(data []byte) ([]Document, error) {
	if len(data) > ManifestMax {
		return nil, fmt.Errorf("the manifest is larger than %d bytes; the API server takes at most that", ManifestMax)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("this is a binary file, not a YAML or JSON manifest")
	}
	raws, err := split(data)
	if err != nil {
		return nil, err
	}
	var out []Document
	for i, raw := range raws {
		items, err := objects(raw)
		if err != nil {
			return nil, at(i+1, "", err)
		}
		for _, d := range items {
			d.Index = i + 1
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no object in it: a manifest needs apiVersion, kind and metadata.name")
	}
	return out, nil
}

func at(index int, item string, err error) error {
	return fmt.Errorf("%s: %w", Document{Index: index, Item: item}.Where(), err)
}

// split returns the documents as JSON, without those that are empty.
func split(data []byte) ([][]byte, error) {
	if !utilyaml.IsJSONBuffer(data) {
		return splitYAML(data)
	}
	raws, jsonErr := splitJSON(data)
	if jsonErr == nil {
		return raws, nil
	}
	// Braces begin YAML too, and JSON documents may stand between lines of dashes.
	if raws, err := splitYAML(data); err == nil {
		return raws, nil
	}
	return nil, jsonErr
}

func splitJSON(data []byte) ([][]byte, error) {
	var out [][]byte
	r := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		err := r.Decode(&raw)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			end := r.InputOffset()
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				end = syntax.Offset
			} else if errors.Is(err, io.ErrUnexpectedEOF) {
				end, err = int64(len(data)), errors.New("the file ends in the middle of an object")
			}
			line := 1 + bytes.Count(data[:min(end, int64(len(data)))], []byte("\n"))
			return nil, at(len(out)+1, "", fmt.Errorf("json: line %d: %w", line, err))
		}
		if err := twice(raw); err != nil {
			return nil, at(len(out)+1, "", err)
		}
		if string(raw) != "null" {
			out = append(out, raw)
		}
	}
}

// twice reports a key that stands in a JSON object twice.
func twice(raw []byte) error {
	var v any
	strict, err := strictjson.UnmarshalStrict(raw, &v, strictjson.DisallowDuplicateFields)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

func splitYAML(data []byte) ([][]byte, error) {
	var out [][]byte
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		raw, err := r.Read()
		if err == io.EOF {
			return out, nil
		}
		var js []byte
		if err == nil {
			js, err = yaml.YAMLToJSONStrict(raw)
		}
		if err == nil {
			err = oneDocument(raw)
		}
		if err != nil {
			text := strings.Replace(err.Error(), "yaml: unmarshal errors:\n  ", "yaml: ", 1)
			return nil, at(len(out)+1, "", errors.New(strings.ReplaceAll(text, "\n  ", "; ")))
		}
		if s := bytes.TrimSpace(js); len(s) > 0 && string(s) != "null" {
			out = append(out, s)
		}
	}
}

// oneDocument reports text after the end of a YAML document.
func oneDocument(raw []byte) error {
	d := yamlv3.NewDecoder(bytes.NewReader(raw))
	var first, next yamlv3.Node
	if err := d.Decode(&first); err != nil {
		return nil // empty
	}
	switch err := d.Decode(&next); {
	case err == io.EOF:
		return nil
	case err != nil:
		return fmt.Errorf("there is text after the end of the object (%w); objects are separated by a line with ---", err)
	}
	return fmt.Errorf("yaml: line %d: there is text after the end of the object; objects are separated by a line with ---", next.Line)
}

// objects takes a list apart: a List, or a list of one kind (PodList), whose items need no
// kind of their own. Any other document is one object.
func objects(raw []byte) ([]Document, error) {
	d, err := object(raw, "", "")
	if err != nil {
		return nil, err
	}
	kind, isList := strings.CutSuffix(d.Kind, "List")
	if !isList {
		return []Document{d}, nil
	}
	items, err := itemsOf(raw)
	if err != nil {
		return nil, err
	}
	version := d.APIVersion
	if kind == "" {
		version = "" // the items of a List have their own
	}
	out := []Document{}
	for n, raw := range items {
		item, err := object(raw, version, kind)
		if err == nil && strings.HasSuffix(item.Kind, "List") {
			err = fmt.Errorf("this is a %s inside of a %s, which kubectl does not take apart; put its items into the outer one", item.Kind, d.Kind)
		}
		item.Item = fmt.Sprintf("items[%d]", n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", item.Item, err)
		}
		out = append(out, item)
	}
	return out, nil
}

func itemsOf(raw []byte) ([]json.RawMessage, error) {
	var list struct {
		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list.Items, &items); len(list.Items) > 0 && err != nil {
		return nil, fmt.Errorf("items is %s, not a list of objects", sortOf(list.Items))
	}
	return items, nil
}

// object reads what every object has. version and kind are those of an item that has none.
func object(raw []byte, version, kind string) (Document, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return Document{}, fmt.Errorf("this is %s, not an object with apiVersion and kind", sortOf(raw))
	}
	d := Document{JSON: raw}
	err := text(o, "apiVersion", &d.APIVersion)
	if err == nil {
		err = text(o, "kind", &d.Kind)
	}
	if err != nil {
		return Document{}, err
	}
	if d.APIVersion == "" && d.Kind == "" && kind != "" && version != "" {
		d.APIVersion, d.Kind = version, kind
		o["apiVersion"], o["kind"] = quoted(version), quoted(kind)
		if d.JSON, err = json.Marshal(o); err != nil {
			return Document{}, err
		}
	}
	for _, f := range [][2]string{{"kind", d.Kind}, {"apiVersion", d.APIVersion}} {
		if f[1] == "" {
			return Document{}, fmt.Errorf("%s is missing: an object begins with apiVersion and kind, such as apiVersion: v1, kind: Pod", f[0])
		}
	}
	var meta map[string]json.RawMessage
	if m := o["metadata"]; len(m) > 0 {
		if err := json.Unmarshal(m, &meta); err != nil {
			return Document{}, fmt.Errorf("metadata is %s, not an object with a name", sortOf(m))
		}
	}
	err = text(meta, "name", &d.Name)
	if err == nil {
		err = text(meta, "namespace", &d.Namespace)
	}
	if err != nil {
		return Document{}, fmt.Errorf("metadata.%w", err)
	}
	return d, nil
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always can be
	return b
}

// text reads a field that is a string where it is given.
func text(o map[string]json.RawMessage, field string, into *string) error {
	raw, ok := o[field]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s is %s, not a string; write it in quotes if it is meant so", field, sortOf(raw))
	}
	return nil
}

// sortOf says in words what sort of value a JSON text is.
func sortOf(raw []byte) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	case raw[0] == '"':
		return "a string"
	case raw[0] == 't' || raw[0] == 'f':
		return "true or false"
	case raw[0] == 'n':
		return "null"
	}
	return "a number"
}

// Plainly says what is wrong with a value without the names of Go types, where err is of
// that kind.
func Plainly(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	value, _, _ := strings.Cut(wrong.Value, " ")
	have := map[string]string{"string": "a string", "number": "a number", "bool": "true or false", "array": "a list", "object": "an object"}[value]
	want := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Map: "an object", reflect.Struct: "an object",
	}[wrong.Type.Kind()]
	if want == "" {
		want = "a whole number"
	}
	if strings.HasPrefix(wrong.Value, "number ") {
		have = wrong.Value // which one: it may be too large
	}
	return fmt.Errorf("%s is %s, not %s", wrong.Field, have, want)
}
