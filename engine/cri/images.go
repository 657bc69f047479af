package cri

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"podwalk/engine/kernel"
	"podwalk/engine/registry"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// local is an image on the node.
type local struct {
	Image registry.Image
}

func (l local) info(cached int) ImageInfo {
	repo, _, _ := strings.Cut(l.Image.Ref, "@")
	if i := strings.LastIndexByte(repo, ':'); i > strings.LastIndexByte(repo, '/') {
		repo = repo[:i]
	}
	return ImageInfo{
		Ref: l.Image.Ref, ID: repo + "@" + l.Image.Digest, SizeBytes: l.Image.Size(), User: l.Image.User,
		Layers: len(l.Image.Layers), Cached: cached,
	}
}

// pulling is a pull that has its manifest.
type pulling struct {
	Q     PullImage
	Image registry.Image
	Since kernel.Time
}

// pulled ends a pull.
type pulled struct {
	Q      PullImage
	Image  registry.Image
	Cached int
	Since  kernel.Time
}

// find returns an image on the node, by its name or its id.
func (r *Runtime) find(name string) (local, bool) {
	ref, err := registry.Normalize(name)
	if err == nil {
		if l, ok := r.Images[ref]; ok {
			return l, true
		}
	}
	for _, k := range sortedKeys(r.Images) {
		if l := r.Images[k]; l.info(0).ID == name {
			return l, true
		}
	}
	return local{}, false
}

func (r *Runtime) imageInfo(name string) ImageInfo {
	if l, ok := r.find(name); ok {
		return l.info(len(l.Image.Layers))
	}
	return ImageInfo{}
}

func (r *Runtime) listImages() []ImageInfo {
	var out []ImageInfo
	for _, k := range sortedKeys(r.Images) {
		out = append(out, r.Images[k].info(0))
	}
	slices.SortStableFunc(out, func(a, b ImageInfo) int { return cmp.Compare(b.SizeBytes, a.SizeBytes) })
	return out
}

// keep puts an image into the node's store.
func (r *Runtime) keep(img registry.Image) {
	r.Images[img.Ref] = local{Image: img}
	for _, l := range img.Layers {
		r.Layers[l.Digest] = true
	}
}

// pull asks the registry for the manifest and then for the layers that are missing.
func (r *Runtime) pull(q PullImage) {
	ref, err := registry.Normalize(q.Image)
	if err != nil {
		r.reply(q.ReplyTo, Response{Tag: q.Tag, Call: "PullImage", Err: "failed to parse image reference " + q.Image + ": " + err.Error()})
		return
	}
	img, bad := r.reg.Resolve(registry.Request{Ref: ref, Named: q.Image, Username: q.Username, Password: q.Password})
	if bad != nil {
		text := "failed to pull and unpack image \"" + ref + "\": " + bad.Text
		if bad.Code != "" {
			text = "rpc error: code = " + bad.Code + " desc = " + text
		}
		r.hop(q.Image, "GET manifest", trace.Retry, bad.Text, nil)
		r.k.Send(q.ReplyTo, bad.Slow, Response{Tag: q.Tag, Call: "PullImage", Err: text})
		return
	}
	cached, _ := r.missing(img)
	r.hop(q.Image, "GET manifest", trace.OK, "", &trace.Pull{Image: ref, Layers: len(img.Layers), Cached: cached, SizeBytes: img.Size()})
	r.k.Send(r.self, r.rand.Jitter(r.cfg.Manifest, r.cfg.Jitter), act{pulling{q, img, r.k.Now()}})
}

// missing counts an image's layers that are here, and the bytes that are not.
func (r *Runtime) missing(img registry.Image) (cached int, bytes int64) {
	for _, l := range img.Layers {
		if r.Layers[l.Digest] {
			cached++
		} else {
			bytes += l.Size
		}
	}
	return cached, bytes
}

// pullLayers has the manifest and asks for the layers that are not here.
func (r *Runtime) pullLayers(p pulling) {
	cached, bytes := r.missing(p.Image)
	all := len(p.Image.Layers)
	took := r.rand.Jitter(r.reg.Transfer(bytes), r.cfg.Jitter) + time.Duration(all-cached)*r.cfg.Unpack
	if cached < all {
		text := fmt.Sprintf("%d of %d layers", all-cached, all)
		r.hop(p.Q.Image, "pull layers", trace.OK, text, &trace.Pull{Image: p.Image.Ref, Layers: all, Cached: cached, SizeBytes: p.Image.Size()})
	}
	r.k.Send(r.self, took, act{pulled{p.Q, p.Image, cached, p.Since}})
}

func (r *Runtime) pullEnds(p pulled) {
	r.keep(p.Image)
	l := r.Images[p.Image.Ref]
	r.reply(p.Q.ReplyTo, Response{Tag: p.Q.Tag, Call: "PullImage", Image: l.info(p.Cached), Took: r.k.Now().Sub(p.Since).Round(time.Millisecond)})
}

// hop tells of a request to the registry. A pull belongs to an image, not to a Pod; the
// hop that led to it names the Pod.
func (r *Runtime) hop(image, verb string, o trace.Outcome, message string, detail *trace.Pull) {
	h := trace.Hop{Stage: stage.Image, From: stage.Component(r.self), To: stage.Registry, Verb: verb, Outcome: o, Message: message}
	if cause, ok := r.log.Get(r.k.Cause()); ok {
		h.Object, h.Background = cause.Object, cause.Background
	}
	if detail != nil {
		h.Detail = *detail
	}
	if h.Message == "" {
		h.Message = image
	}
	r.log.Record(h)
}
