package process

import (
	"path"
	"slices"
	"strings"
)

// directories are there in every image.
var directories = []string{
	"/", "/bin", "/dev", "/etc", "/home", "/lib", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr",
	"/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/sbin", "/usr/share", "/var", "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool", "/var/tmp", "/var/www",
	"/dev/shm", "/dev/pts",
}

// devices are files that are no files.
var devices = []string{"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random", "/dev/urandom"}

// What the system says.
const (
	notThere = "No such file or directory"
	readOnly = "Read-only file system"
	tooLong  = "File name too long"
	noSpace  = "No space left on device"
)

// nameFits reports whether Linux takes an absolute path.
func nameFits(p string) bool { return len(p) < pathMax && len(path.Base(p)) <= nameMax }

// abs makes a path absolute.
func (t *task) abs(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = t.Sh.Dir + "/" + p
	}
	return path.Clean(p)
}

// Find returns the file system that an absolute path lies in, and the path in it.
func (s *Spec) Find(p string) (mt Mount, rel string) {
	mt = Mount{Path: "/", Volume: "root"}
	best := -1
	for _, x := range s.Mounts {
		if (x.Path == "/" || p == x.Path || strings.HasPrefix(p, x.Path+"/")) && len(x.Path) > best {
			mt, best = x, len(x.Path)
		}
	}
	return mt, strings.Trim(path.Join(mt.Sub, strings.TrimPrefix(p, mt.Path)), "/")
}

func (m *machine) readAbs(p string) (string, bool) {
	if slices.Contains(devices, p) {
		return "", true
	}
	mt, rel := m.p.Spec.Find(p)
	return m.w.ReadFile(mt.Volume, rel)
}

func (m *machine) readFile(t *task, p string) (string, bool) {
	if p == "/proc/1/cmdline" || p == "/proc/self/cmdline" {
		return strings.Join(m.p.Spec.Argv, "\x00"), true
	}
	return m.readAbs(t.abs(p))
}

// writeAbs puts a file down; why is the system's error, "" for none.
func (m *machine) writeAbs(p, content string) (why string) {
	if slices.Contains(devices, p) {
		return ""
	}
	mt, rel := m.p.Spec.Find(p)
	switch {
	case !nameFits(p):
		return tooLong
	case mt.ReadOnly:
		return readOnly
	case m.isDir(p):
		return "Is a directory"
	case p != mt.Path && !m.isDir(path.Dir(p)):
		return "nonexistent directory"
	}
	if _, there := m.w.ReadFile(mt.Volume, rel); !there && m.w.CountFiles(mt.Volume) >= filesMax {
		return noSpace
	}
	m.w.WriteFile(mt.Volume, rel, content)
	return ""
}

// below lists what an absolute directory holds, as paths relative to it; what was made as
// a directory ends with a slash.
func (m *machine) below(dir string) []string {
	mt, rel := m.p.Spec.Find(dir)
	prefix := ""
	if rel != "" {
		prefix = rel + "/"
	}
	var out []string
	for _, f := range m.w.ListFiles(mt.Volume) {
		if rest, ok := strings.CutPrefix(f, prefix); ok && rest != "" {
			out = append(out, rest)
		}
	}
	for _, x := range m.p.Spec.Mounts {
		if rest, ok := strings.CutPrefix(x.Path, strings.TrimSuffix(dir, "/")+"/"); ok && rest != "" {
			if _, file := m.w.ReadFile(x.Volume, x.Sub); !file {
				rest += "/"
			}
			out = append(out, rest)
		}
	}
	return out
}

// isDir reports whether an absolute path is a directory.
func (m *machine) isDir(p string) bool {
	if slices.Contains(directories, p) {
		return true
	}
	mt, rel := m.p.Spec.Find(p)
	if _, file := m.w.ReadFile(mt.Volume, rel); file {
		return false
	}
	if p == mt.Path {
		return true
	}
	if m.w.AnyFile(mt.Volume, rel+"/") {
		return true
	}
	return slices.ContainsFunc(m.p.Spec.Mounts, func(x Mount) bool { return strings.HasPrefix(x.Path, p+"/") })
}

func (m *machine) exists(p string) bool {
	_, file := m.readAbs(p)
	return file || m.isDir(p)
}

// names lists a directory's entries, sorted.
func (m *machine) names(dir string) []string {
	seen := map[string]bool{}
	for _, f := range m.below(dir) {
		name, _, _ := strings.Cut(f, "/")
		seen[name] = true
	}
	for _, d := range slices.Concat(directories, devices) {
		if d != "/" && path.Dir(d) == dir {
			seen[path.Base(d)] = true
		}
	}
	out := make([]string, 0, len(seen))
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// remove takes a file away, or a directory with all that it holds.
func (m *machine) remove(p string, whole bool) (why string) {
	mt, rel := m.p.Spec.Find(p)
	if mt.ReadOnly {
		return readOnly
	}
	if _, file := m.w.ReadFile(mt.Volume, rel); file {
		m.w.RemoveFile(mt.Volume, rel)
		return ""
	}
	switch {
	case !m.isDir(p):
		return notThere
	case !whole:
		return "Is a directory"
	case p == mt.Path:
		return "Resource busy"
	}
	for _, f := range m.w.ListFiles(mt.Volume) {
		if strings.HasPrefix(f, rel+"/") {
			m.w.RemoveFile(mt.Volume, f)
		}
	}
	return ""
}

// glob finds the files that a pattern means: one with its wildcards in the last part.
func (m *machine) glob(t *task, pattern string) []string {
	dir, base := path.Split(pattern)
	if strings.ContainsAny(dir, "*?[") {
		return nil
	}
	from := t.abs(dir)
	if dir == "" {
		from = t.Sh.Dir
	}
	if !m.isDir(from) {
		return nil
	}
	var out []string
	for _, n := range m.names(from) {
		if (!strings.HasPrefix(n, ".") || strings.HasPrefix(base, ".")) && matches(base, n) {
			out = append(out, dir+n)
		}
	}
	return out
}
