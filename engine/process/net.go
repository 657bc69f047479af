package process

import (
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
	"time"
)

// connectTimeout is how long the system tries to connect to an address that does not
// answer.
const connectTimeout = 127 * time.Second

// request is what wget and curl are asked for.
type request struct {
	url, host, output, format string
	timeout                   time.Duration
	quiet, fail, head         bool
}

func (c *call) request() request {
	r := request{timeout: connectTimeout}
	for i := 1; i < len(c.args); i++ {
		a := c.args[i]
		value := func(short string) string {
			if rest, ok := strings.CutPrefix(a, short); ok && rest != "" {
				return strings.TrimPrefix(rest, "=")
			}
			i++
			return arg(c.args, i)
		}
		wget := path.Base(c.args[0]) == "wget"
		switch {
		case strings.HasPrefix(a, "--connect-timeout"):
			r.timeout, _ = span(value("--connect-timeout"))
		case strings.HasPrefix(a, "--max-time"):
			r.timeout, _ = span(value("--max-time"))
		case strings.HasPrefix(a, "--timeout"):
			r.timeout, _ = span(value("--timeout"))
		case strings.HasPrefix(a, "-T") && wget:
			r.timeout, _ = span(value("-T"))
		case strings.HasPrefix(a, "-m") && !wget:
			r.timeout, _ = span(value("-m"))
		case wget && (a == "-O" || strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "O")):
			flags, output, _ := strings.Cut(a, "O")
			r.quiet = r.quiet || strings.Contains(flags, "q")
			if r.output = output; output == "" {
				i++
				r.output = arg(c.args, i)
			}
		case !wget && a == "-o":
			i++
			r.output = arg(c.args, i)
		case a == "-w" || a == "--write-out":
			i++
			r.format = escaped(arg(c.args, i))
		case a == "-H" || a == "-X" || a == "-d" || a == "-A" || a == "-u" || a == "--header" || a == "-t" || a == "--retry" || a == "--data":
			i++
		case a == "--spider":
			r.head = true
		case a == "--fail":
			r.fail = true
		case a == "--silent" || a == "--quiet":
			r.quiet = true
		case strings.HasPrefix(a, "--"):
		case strings.HasPrefix(a, "-"):
			r.quiet = r.quiet || strings.ContainsAny(a, "qs") && !strings.Contains(a, "S")
			r.fail = r.fail || strings.Contains(a, "f")
			r.head = r.head || strings.Contains(a, "I")
		default:
			r.url = a
		}
	}
	if r.url != "" && !strings.Contains(r.url, "://") {
		r.url = "http://" + r.url
	}
	_, rest, _ := strings.Cut(r.url, "://")
	r.host, _, _ = strings.Cut(rest, "/")
	return r
}

// fetch is wget and curl. The request is made at once; its answer is shown when it has
// taken its time.
func fetch(c *call) (int, bool) {
	r := c.request()
	if r.url == "" {
		c.err(path.Base(c.args[0]) + ": missing URL\n")
		return 2, true
	}
	if c.f.Step == 0 {
		code, body, why := c.m.w.Fetch(r.url)
		c.f.Step, c.f.Args, c.f.N = 1, append([]string{c.args[0], why}, c.args[1:]...), code
		c.f.Text = body
		d := 5 * time.Millisecond
		if strings.Contains(why, "timed out") {
			d = min(r.timeout, connectTimeout)
		}
		c.sleep(d)
		c.f.Params = c.args
		return 0, false
	}
	c.args = c.f.Params
	r = c.request()
	code, body, why := c.f.N, c.f.Text, c.f.Args[1]
	if path.Base(c.args[0]) == "wget" {
		return c.wget(r, code, body, why), true
	}
	return c.curl(r, code, body, why), true
}

func (r request) address() (host, port string) {
	host, port, err := net.SplitHostPort(r.host)
	if err != nil {
		return r.host, "80"
	}
	return host, port
}

func (c *call) wget(r request, code int, body, why string) int {
	host, port := r.address()
	ip, known := c.m.w.Resolve(host)
	if !known {
		ip = host
	}
	if !r.quiet && !strings.HasPrefix(why, "bad address") {
		c.err("Connecting to " + r.host + " (" + net.JoinHostPort(ip, port) + ")\n")
	}
	switch {
	case strings.HasPrefix(why, "bad address"):
		c.err("wget: " + why + "\n")
		return 1
	case strings.Contains(why, "timed out"):
		if r.timeout < connectTimeout {
			c.err("wget: download timed out\n")
			return 1
		}
		c.err("wget: can't connect to remote host (" + ip + "): Connection timed out\n")
		return 1
	case why == "error getting response":
		c.err("wget: " + why + "\n")
		return 1
	case why != "":
		c.err("wget: can't connect to remote host (" + ip + "): " + why + "\n")
		return 1
	case code >= 400:
		c.err(fmt.Sprintf("wget: server returned error: HTTP/1.1 %d %s\n", code, statusText(code)))
		return 1
	}
	if r.head {
		return 0
	}
	if r.output == "" {
		r.output = "index.html"
		if base := path.Base(r.url); !strings.HasSuffix(r.url, "/") && strings.Contains(strings.TrimPrefix(r.url, "http://"), "/") {
			r.output = base
		}
	}
	return c.save(r.output, body)
}

// save puts what was fetched where it is wanted.
func (c *call) save(to, body string) int {
	switch to {
	case "-", "/dev/stdout":
		c.out(body)
	case "/dev/null":
	default:
		if why := c.m.writeAbs(c.t.abs(to), body); why != "" {
			c.err(path.Base(c.args[0]) + ": can't open '" + to + "': " + why + "\n")
			return 1
		}
	}
	return 0
}

func statusText(code int) string {
	return map[int]string{400: "Bad Request", 403: "Forbidden", 404: "Not Found", 500: "Internal Server Error", 503: "Service Unavailable"}[code]
}

func (c *call) curl(r request, code int, body, why string) int {
	host, port := r.address()
	status, text := 0, ""
	switch {
	case strings.HasPrefix(why, "bad address"):
		status, text = 6, "Could not resolve host: "+host
	case strings.Contains(why, "timed out"):
		status, text = 28, fmt.Sprintf("Connection timed out after %d milliseconds", r.timeout.Milliseconds()+1)
	case why == "error getting response":
		status, text = 52, "Empty reply from server"
	case why != "":
		status, text = 7, "Failed to connect to "+host+" port "+port+" after 0 ms: Couldn't connect to server"
	case code >= 400 && r.fail:
		status, text = 22, "The requested URL returned error: "+strconv.Itoa(code)
	}
	if status != 0 {
		code = btoi(status == 22) * code
		if !r.quiet || strings.Contains(strings.Join(c.args, " "), "S") {
			c.err(fmt.Sprintf("curl: (%d) %s\n", status, text))
		}
	} else {
		if r.head {
			body = fmt.Sprintf("HTTP/1.1 %d %s\r\n\r\n", code, map[bool]string{true: "OK", false: statusText(code)}[code == 200])
		}
		if r.output == "" {
			r.output = "-"
		}
		if s := c.save(r.output, body); s != 0 {
			return s
		}
	}
	c.out(strings.ReplaceAll(r.format, "%{http_code}", fmt.Sprintf("%03d", code)))
	return status
}

func lookup(c *call) (int, bool) {
	if c.f.Step == 0 {
		c.f.Step = 1
		c.sleep(2 * time.Millisecond)
		return 0, false
	}
	name := arg(c.args, 1)
	ip, ok := c.m.w.Resolve(name)
	c.out("Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\n")
	if !ok {
		c.out("** server can't find " + name + ": NXDOMAIN\n")
		return 1, true
	}
	c.out("Name:\t" + name + "\nAddress: " + ip + "\n")
	return 0, true
}

// nc listens, or asks whether somebody does.
func nc(c *call) (int, bool) {
	if c.f.Step == 1 {
		c.t.wait(blockForever, 0)
		return 0, false
	}
	flags, values, rest := c.options("pwe")
	port := number(values['p'], number(arg(rest, len(rest)-1), 0))
	if strings.Contains(flags, "l") {
		if port <= 0 || port > 65535 || !c.m.listen(c.t, int32(port)) {
			c.err("nc: bind: Address already in use\n")
			return 1, true
		}
		c.f.Step = 1
		return 0, false
	}
	if len(rest) < 2 {
		return 1, true
	}
	_, _, why := c.m.w.Fetch("http://" + net.JoinHostPort(rest[0], strconv.Itoa(port)) + "/")
	switch {
	case why == "" || why == "error getting response":
		if strings.Contains(flags, "v") {
			c.err(rest[0] + " (" + rest[0] + ":" + strconv.Itoa(port) + ") open\n")
		}
		return 0, true
	case strings.HasPrefix(why, "bad address"):
		c.err("nc: " + why + "\n")
	default:
		c.err("nc: " + rest[0] + " (" + rest[0] + ":" + strconv.Itoa(port) + "): " + why + "\n")
	}
	return 1, true
}
