package cri

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"podwalk/engine/network"
	"podwalk/engine/process"
)

// serve answers a call to one of the containers' ports.
func (r *Runtime) serve(q network.Request) {
	a := network.Answer{ID: q.ID}
	if c := r.Containers[r.Ports[q.Call.To]]; c == nil || c.State != "running" {
		a.Err = "dial tcp " + q.Call.To + ": connect: connection refused"
		r.k.Send(network.Self, 0, a)
		return
	}
	code, body, http := r.Respond(q.Call)
	if !http || q.Call.Protocol == network.GRPC {
		a.Err = "EOF"
	}
	a.Code, a.Body = code, []byte(body)
	r.k.Send(network.Self, time.Millisecond, a)
}

// Respond implements network.Responder.
func (r *Runtime) Respond(q network.Call) (code int, body string, ok bool) {
	c := r.Containers[r.Ports[q.To]]
	_, port, err := net.SplitHostPort(q.To)
	if c == nil || c.State != "running" || err != nil {
		return 0, "", false
	}
	n, _ := strconv.ParseInt(port, 10, 32)
	code, body, access, ok := c.Proc.Answer(int32(n), q.Path, world{r, c}.file)
	if ok && access != "" {
		c.write(process.Event{At: r.k.Now(), Kind: process.Out, Text: strings.NewReplacer(
			"{from}", q.From, "{time}", r.k.Now().Wall().UTC().Format("02/Jan/2006:15:04:05 -0700"), "{method}", cmp.Or(q.Method, "GET"),
			"{path}", q.Path, "{code}", strconv.Itoa(code), "{size}", strconv.Itoa(len(body)), "{agent}", cmp.Or(q.Headers["User-Agent"], "Wget"),
		).Replace(access) + "\n"})
	}
	return code, body, ok
}

// world is what a container's processes see around them. Files are replaced when they
// change, and never changed in place: snapshots share them.
type world struct {
	r *Runtime
	c *container
}

func (w world) files(volume string) map[string]string {
	if volume == rootVolume {
		return w.c.Files
	}
	return w.r.Volumes[volumeKey(w.c, volume)]
}

func (w world) change(volume string, change func(map[string]string)) {
	files := maps.Clone(w.files(volume))
	if files == nil {
		files = map[string]string{}
	}
	change(files)
	if volume == rootVolume {
		w.c.Files = files
	} else {
		w.r.Volumes[volumeKey(w.c, volume)] = files
	}
}

// ReadFile implements process.World.
func (w world) ReadFile(volume, p string) (string, bool) {
	s, ok := w.files(volume)[p]
	return s, ok
}

// WriteFile implements process.World.
func (w world) WriteFile(volume, p, content string) {
	w.change(volume, func(files map[string]string) { files[p] = content })
	if volume == rootVolume && p == "dev/termination-log" {
		w.c.Message = content
	}
}

// RemoveFile implements process.World.
func (w world) RemoveFile(volume, p string) {
	w.change(volume, func(files map[string]string) { delete(files, p) })
}

// ListFiles implements process.World.
func (w world) ListFiles(volume string) []string { return slices.Sorted(maps.Keys(w.files(volume))) }

// AnyFile implements process.World.
func (w world) AnyFile(volume, prefix string) bool {
	if _, made := w.files(volume)[prefix]; made { // a directory
		return true
	}
	for p := range w.files(volume) {
		if strings.HasPrefix(p, prefix) {
			return true
		}
	}
	return false
}

// CountFiles implements process.World.
func (w world) CountFiles(volume string) int { return len(w.files(volume)) }

// Bind implements process.World.
func (w world) Bind(port int32) bool { return !w.r.net.Listening(w.c.address(port)) }

// file finds an absolute path through the mounts.
func (w world) file(p string) (string, bool) {
	mt, rel := w.c.Spec.Find(p)
	return w.ReadFile(mt.Volume, rel)
}

// Fetch implements process.World. A script's own requests are answered at once.
func (w world) Fetch(url string) (code int, body, err string) {
	_, rest, _ := strings.Cut(url, "://")
	host, p, _ := strings.Cut(rest, "/")
	if !strings.Contains(host, ":") {
		host += ":80"
	}
	name, port, _ := strings.Cut(host, ":")
	ip := w.c.Spec.IP
	if name != "localhost" && name != "127.0.0.1" {
		found := false
		if ip, found = w.Resolve(name); !found {
			return 0, "", "bad address '" + name + "'"
		}
	}
	return w.r.net.Fetch(w.c.Spec.IP, net.JoinHostPort(ip, port), "/"+p)
}

// Resolve implements process.World.
func (w world) Resolve(name string) (string, bool) {
	return w.r.net.Resolve(w.r.Sandboxes[w.c.SandboxID].Namespace, name)
}
