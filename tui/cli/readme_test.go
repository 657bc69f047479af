package cli_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"podwalk/assets"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
)

var update = flag.Bool("update", false, "write the generated parts of the README")

// TestReadmeKeys holds the README's table of keys against the keys themselves;
// go test ./tui/cli -update writes it.
func TestReadmeKeys(t *testing.T) {
	const file = "../../README.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := i18n.Load(assets.FS)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(data), "<!-- keys:")
	mark, rest, ok2 := strings.Cut(rest, "-->\n")
	_, tail, ok3 := strings.Cut(rest, "<!-- /keys -->")
	if !ok1 || !ok2 || !ok3 {
		t.Fatal("the README has lost its marks for the keys")
	}
	want := head + "<!-- keys:" + mark + "-->\n" + app.KeyTable(bundle.In(i18n.English)) + "<!-- /keys -->" + tail
	if want == string(data) {
		return
	}
	if !*update {
		t.Fatal("the README's keys are not those of the program; run: go test ./tui/cli -update")
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
