package process

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// fetch is wget and curl, as far as scripts look at them.
func fetch(m *machine, args []string) int {
	url, quiet, failing := "", false, false
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-O" || a == "-o" || a == "-T" || a == "-H" || a == "-m" || a == "--max-time" || a == "-w":
			i++
		case strings.HasPrefix(a, "-"):
			quiet = quiet || strings.Contains(a, "q") || strings.Contains(a, "s")
			failing = failing || strings.Contains(a, "f")
		default:
			url = a
		}
	}
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	answer := m.ask(func() string {
		code, body, err := m.world.Fetch(url)
		return fmt.Sprintf("%d\x00%s\x00%s", code, body, err)
	})
	parts := strings.SplitN(answer, "\x00", 3)
	m.pass(5*time.Millisecond, false)
	if len(parts) < 3 || parts[2] != "" {
		why := "download failed"
		if len(parts) == 3 {
			why = parts[2]
		}
		if !quiet {
			m.stderr(args[0] + ": can't connect to remote host: " + why + "\n")
		}
		return 1
	}
	code, _ := strconv.Atoi(parts[0])
	if code >= 400 && (args[0] == "wget" || failing) {
		m.stderr(fmt.Sprintf("wget: server returned error: HTTP/1.1 %d\n", code))
		return 1
	}
	m.stdout(parts[1])
	return 0
}

func nslookup(m *machine, args []string) int {
	if len(args) < 2 {
		return 1
	}
	ip := m.ask(func() string {
		ip, _ := m.world.Resolve(args[1])
		return ip
	})
	m.pass(2*time.Millisecond, false)
	if ip == "" {
		m.stdout("Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\n** server can't find " + args[1] + ": NXDOMAIN\n")
		return 1
	}
	m.stdout("Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\nName:\t" + args[1] + "\nAddress: " + ip + "\n")
	return 0
}

// nc listens, or does nothing.
func nc(m *machine, args []string) int {
	for i, a := range args {
		if strings.Contains(a, "l") && strings.HasPrefix(a, "-") {
			for _, b := range args[i+1:] {
				if port, err := strconv.Atoi(b); err == nil {
					m.ports = append(m.ports, int32(port))
					m.emit(Event{At: m.now, Kind: Listen, Port: int32(port)})
					m.forever()
				}
			}
		}
	}
	return 0
}
