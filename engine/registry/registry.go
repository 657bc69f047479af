// Package registry is where images come from: the registries of the world, as far as a
// node can see them. What they have is data (assets/catalog/images.yaml).
//
// Left out: the distribution protocol itself, manifests for several platforms, rate limits,
// signatures.
package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"sigs.k8s.io/yaml"

	"podwalk/assets"
	"podwalk/engine/fault"
	"podwalk/engine/process"
)

// Image is what a registry knows of one image.
type Image struct {
	Ref        string // "docker.io/library/nginx:1.29"
	Digest     string // "sha256:…" of its manifest
	Layers     []Layer
	Entrypoint []string
	Cmd        []string
	User       string
	StopSignal string
	Ports      []int32
	Programs   []process.Program
	Env        []process.Var
	WorkingDir string
	Tools      bool              // it has a shell and the small commands
	Files      map[string]string // what is worth reading in it, by its path without the first slash; never changed
}

// Layer is one layer, by its digest; images share layers.
type Layer struct {
	Digest string
	Size   int64
}

// Size is the sum of the layers.
func (i Image) Size() int64 {
	var n int64
	for _, l := range i.Layers {
		n += l.Size
	}
	return n
}

type entry struct {
	Repository string   `json:"repository"`
	Tags       []string `json:"tags"`
	Layers     []int64  `json:"layers"`
	Entrypoint []string `json:"entrypoint"`
	Cmd        []string `json:"cmd"`
	User       string   `json:"user"`
	StopSignal string   `json:"stopSignal"`
	Ports      []int32  `json:"ports"`
	Programs   []string `json:"programs"`
	Tools      bool     `json:"tools"`
	WorkingDir string   `json:"workingDir"`
	Env        []string `json:"env"`
	// Files are what is worth reading in the image; Users the names in its /etc/passwd.
	Files map[string]string `json:"files"`
	Users []string          `json:"users"`
	// Versions are what the programs call themselves, by tag, where that is not the tag.
	Versions map[string]string `json:"versions"`
}

// refusal is a registry, or a part of one, that does not give its images away.
type refusal struct {
	// Prefix of the normalized references that it is about.
	Prefix string `json:"prefix"`
	// Error is why; {url} is the manifest's and {ref} the reference.
	Error string `json:"error"`
	// Wrong is why not, for credentials that are not Username and Password; where they are
	// right the image is given.
	Wrong              string `json:"wrong"`
	Username, Password string
	// Code of the RPC, "" for none.
	Code string           `json:"code"`
	Slow process.Duration `json:"slow"`
}

type catalog struct {
	Bandwidth int64             `json:"bandwidth"`
	Programs  []process.Program `json:"programs"`
	Refusals  []refusal         `json:"refusals"`
	Images    []entry           `json:"images"`
	Default   entry             `json:"default"`
}

// Registry answers for all registries. It holds no state of the run.
type Registry struct {
	board *fault.Board
	cat   *catalog
}

var builtin = func() *catalog {
	data, err := assets.FS.ReadFile("catalog/images.yaml")
	if err != nil {
		panic(err)
	}
	var c catalog
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		panic("catalog/images.yaml: " + err.Error())
	}
	return &c
}()

// New returns the registries.
func New(board *fault.Board) *Registry { return &Registry{board, builtin} }

// Error is why an image cannot be had, as containerd prints it after "failed to pull and
// unpack image …: ".
type Error struct {
	Code string // of the RPC: "NotFound", "DeadlineExceeded"; "" where containerd gives none
	Text string
	Slow time.Duration // how long it takes until that is known
}

// Request is what a node asks a registry for.
type Request struct {
	Ref                string // normalized
	Named              string // as the Pod spells it
	Username, Password string
}

// Normalize spells a reference out: "nginx" is "docker.io/library/nginx:latest".
func Normalize(ref string) (string, error) {
	n, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", err
	}
	return n.String(), nil
}

// Resolve asks the registry for an image.
func (r *Registry) Resolve(q Request) (Image, *Error) {
	ref := q.Ref
	host, _, _ := strings.Cut(ref, "/")
	dial := host
	if host == "docker.io" {
		dial = "registry-1.docker.io"
	}
	if r.board.Hits(fault.RegistryDown, host) {
		return Image{}, &Error{Slow: 40 * time.Millisecond, Text: fmt.Sprintf("failed to resolve image: failed to do request: Head %q: dial tcp %s:443: connect: connection refused",
			manifestURL(dial, ref), address(dial))}
	}
	missing := &Error{Code: "NotFound", Slow: 400 * time.Millisecond, Text: "failed to resolve image: " + ref + ": not found"}
	if v, on := r.board.On(fault.RegistryTagMissing); on && (v == q.Named || v == ref || v == "") {
		return Image{}, missing
	}
	if bad := r.refused(q, manifestURL(dial, ref)); bad != nil {
		return Image{}, bad
	}
	repo, tag := split(ref)
	e := r.find(repo)
	_, want, pinned := strings.Cut(ref, "@")
	switch {
	case len(e.Tags) == 0:
		img := r.image(e, repo, ref)
		if pinned {
			img.Digest = want
		}
		return img, nil
	case pinned:
		for _, t := range e.Tags {
			if img := r.image(e, repo, repo+":"+t); img.Digest == want {
				img.Ref = ref
				return img, nil
			}
		}
		return Image{}, missing
	case !slices.Contains(e.Tags, tag):
		return Image{}, missing
	}
	return r.image(e, repo, ref), nil
}

// refused looks for a registry that gives nothing, or not to everybody.
func (r *Registry) refused(q Request, url string) *Error {
	for _, no := range r.cat.Refusals {
		if !strings.HasPrefix(q.Ref, no.Prefix) {
			continue
		}
		text := no.Error
		if no.Username != "" && q.Username != "" {
			if q.Username == no.Username && q.Password == no.Password {
				return nil
			}
			text = no.Wrong
		}
		text = strings.NewReplacer("{url}", url, "{ref}", q.Ref).Replace(text)
		return &Error{Code: no.Code, Slow: max(time.Duration(no.Slow), 30*time.Millisecond), Text: "failed to resolve image: " + text}
	}
	return nil
}

func manifestURL(host, ref string) string {
	repo, tag := split(ref)
	_, path, _ := strings.Cut(repo, "/")
	if tag == "" {
		_, tag, _ = strings.Cut(ref, "@")
	}
	return "https://" + host + "/v2/" + path + "/manifests/" + tag
}

// address is a made-up but fixed address of a registry.
func address(host string) string {
	sum := sha256.Sum256([]byte(host))
	return fmt.Sprintf("198.51.100.%d", 1+int(sum[0])%250)
}

// split takes a normalized reference apart; tag is empty for a digest.
func split(ref string) (repo, tag string) {
	ref, _, digest := strings.Cut(ref, "@")
	i := strings.LastIndexByte(ref, ':')
	if i > strings.LastIndexByte(ref, '/') {
		return ref[:i], ref[i+1:]
	}
	if digest {
		return ref, ""
	}
	return ref, "latest"
}

func (r *Registry) find(repo string) entry {
	for _, e := range r.cat.Images {
		if e.Repository == repo {
			return e
		}
	}
	d := r.cat.Default
	d.Repository = repo
	return d
}

func (r *Registry) image(e entry, repo, ref string) Image {
	img := Image{
		Ref: ref, Digest: "sha256:" + digest("manifest", repo, ref), Entrypoint: e.Entrypoint, Cmd: e.Cmd,
		User: e.User, StopSignal: e.StopSignal, Ports: e.Ports, Tools: e.Tools, WorkingDir: e.WorkingDir, Files: e.files(),
	}
	for _, v := range e.Env {
		name, value, _ := strings.Cut(v, "=")
		img.Env = append(img.Env, process.Var{Name: name, Value: value})
	}
	if img.StopSignal == "" {
		img.StopSignal = "TERM"
	}
	for i, size := range e.Layers {
		owner := repo
		if size == 29800000 {
			owner = "debian" // the base layer is the same one everywhere
		}
		if i > 0 {
			owner = ref
		}
		img.Layers = append(img.Layers, Layer{"sha256:" + digest("layer", owner, fmt.Sprint(i, size)), size})
	}
	for _, name := range e.Programs {
		for _, p := range r.cat.Programs {
			if p.Name == name {
				img.Programs = append(img.Programs, e.versioned(p, ref))
			}
		}
	}
	return img
}

// versioned is a program as it calls itself in an image: "1.27-alpine" is nginx 1.27.5.
func (e entry) versioned(p process.Program, ref string) process.Program {
	_, tag := split(ref)
	tag, _, _ = strings.Cut(tag, "-")
	version, ok := e.Versions[tag]
	switch {
	case ok:
	case strings.Count(tag, ".") == 2:
		version = tag
	default:
		version = e.Versions["latest"]
	}
	p.Version = strings.ReplaceAll(p.Version, "{version}", version)
	p.Log = slices.Clone(p.Log)
	for i := range p.Log {
		p.Log[i] = strings.ReplaceAll(p.Log[i], "{version}", version)
	}
	return p
}

// files are an image's files, with those that every image with a shell has.
func (e entry) files() map[string]string {
	out := map[string]string{}
	if e.Tools {
		passwd := "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/false\n"
		for i, u := range e.Users {
			passwd += fmt.Sprintf("%s:x:%d:%d::/home/%s:/bin/sh\n", u, 100+i, 100+i, u)
		}
		out["etc/passwd"], out["etc/group"] = passwd, "root:x:0:\nnogroup:x:65534:\n"
	}
	for path, text := range e.Files {
		out[strings.TrimPrefix(path, "/")] = text
	}
	return out
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// Transfer is how long so many bytes take.
func (r *Registry) Transfer(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(r.cat.Bandwidth) * float64(time.Second))
}
