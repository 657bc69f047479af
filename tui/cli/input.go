package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"podwalk/engine"
	"podwalk/engine/scenario"
)

// settingsMax bounds the settings file.
const settingsMax = 1 << 20

// errTooLarge says that a file goes on beyond the limit.
var errTooLarge = errors.New("the file is too large")

// readAtMost reads a file (r, or the one of that name) that may be anything: a device, a
// pipe, a download by mistake. It never reads more than one byte beyond the limit.
func readAtMost(name string, r io.Reader, limit int64) ([]byte, error) {
	if r == nil {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if st, err := f.Stat(); err == nil && st.IsDir() {
			return nil, fmt.Errorf("%s is a directory; name a file in it", name)
		}
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: %w", name, errTooLarge)
	}
	return data, err
}

func readSettings(name string) ([]byte, error) {
	data, err := readAtMost(name, nil, settingsMax)
	if errors.Is(err, errTooLarge) {
		return nil, fmt.Errorf("%w: settings take at most %d bytes", err, settingsMax)
	}
	return data, err
}

// readManifest reads a file and checks it as far as kubectl would, so that the error
// names the file and the document.
func (c *command) readManifest(name string) (string, error) {
	var in io.Reader
	switch {
	case name == "":
		return "", usage("-f is empty; name a manifest file, or - for standard input")
	case name == "-" && c.stdinRead:
		return "", usage("-f -: standard input was already read; it can be named once")
	case name == "-":
		in, c.stdinRead = c.stdin, true
	}
	data, err := readAtMost(name, in, scenario.ManifestMax)
	if err != nil && !errors.Is(err, errTooLarge) { // what is too large is the manifest's own error
		return "", usage("%v", err)
	}
	if err := engine.CheckManifest(data); err != nil {
		return "", usage("%s: %v", name, err)
	}
	return string(data), nil
}
