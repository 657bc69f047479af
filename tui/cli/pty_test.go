package cli_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestHangUp: a terminal that goes away ends the program, and nothing of it is left.
func TestHangUp(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home, tmp := t.TempDir(), t.TempDir()
	c := exec.Command(program, "play", "--lang", "en", "--run", "kubectl run nginx --image=nginx")
	c.Env = []string{asProgram + "=1", "HOME=" + home, "TMPDIR=" + tmp, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	go func() { _, _ = io.Copy(io.Discard, tty) }()
	left := func() []os.DirEntry {
		d, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for deadline := time.Now().Add(20 * time.Second); len(left()) < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the sandbox does not open its doors")
		}
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if d := left(); len(d) > 0 {
		t.Errorf("left behind: %v", d)
	}
}

// terminal runs the program in a terminal: await waits for words on the screen, press
// types, end waits for the program's end.
func terminal(t *testing.T, home string) (await, press func(string), end func()) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program)
	c.Env = []string{asProgram + "=1", "HOME=" + home, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	screen := make(chan string, 1024)
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := tty.Read(buf)
			if err != nil {
				close(screen)
				return
			}
			screen <- string(buf[:n])
		}
	}()
	await = func(want string) {
		t.Helper()
		var seen bytes.Buffer
		for deadline := time.After(20 * time.Second); ; {
			select {
			case s, ok := <-screen:
				seen.WriteString(s)
				switch {
				case strings.Contains(seen.String(), want):
					return
				case !ok:
					t.Fatalf("the program ended before it showed %q:\n%q", want, seen.String())
				}
			case <-deadline:
				t.Fatalf("%q did not come:\n%q", want, seen.String())
			}
		}
	}
	press = func(keys string) {
		t.Helper()
		if _, err := tty.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	return await, press, func() {
		t.Helper()
		if err := c.Wait(); err != nil {
			t.Fatalf("it does not end well: %v", err)
		}
	}
}

// TestTerminal is the smoke test of the real thing: the program in a terminal, from the
// first question to the way out.
func TestTerminal(t *testing.T) {
	await, press, end := terminal(t, t.TempDir())
	await("繁體中文") // the first start asks for the language
	press("\r")
	await("What now?")
	press("\r")
	await("One command, one question")
	press("q")
	await("What now?")
	press("q")
	end()
}

// TestSavedThemeIsGone: a theme that was saved and does not exist any more stops nobody.
func TestSavedThemeIsGone(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".local", "state", "podwalk")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "progress.json"), []byte(`{"version":1,"settings":{"lang":"en","theme":"gone"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	await, press, end := terminal(t, home)
	await("What now?")
	press("q")
	end()
}
