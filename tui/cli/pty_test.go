package cli_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
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

// TestTerminal is the smoke test of the real thing: the program in a terminal, from the
// first question to the way out.
func TestTerminal(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program)
	c.Env = []string{asProgram + "=1", "HOME=" + t.TempDir(), "TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
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
	await := func(want string) {
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
	press := func(keys string) {
		t.Helper()
		if _, err := tty.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	await("繁體中文") // the first start asks for the language
	press("\r")
	await("What now?")
	press("\r")
	await("One command, one question")
	press("q")
	await("What now?")
	press("q")
	if err := c.Wait(); err != nil {
		t.Fatalf("it does not end well: %v", err)
	}
}
