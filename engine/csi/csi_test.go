package csi

import (
	"strings"
	"testing"
	"time"

	"podwalk/engine/kernel"
)

type asker struct{ got []Response }

func (a *asker) Handle(ev kernel.Event) { a.got = append(a.got, ev.(Response)) }

// TestPublish: a volume is staged before it is published, an inline one needs no stage,
// and a driver that is not there says so.
func TestPublish(t *testing.T) {
	k := kernel.New(1)
	cfg := DefaultConfig()
	cfg.Node = "node01"
	p := New(k, cfg)
	a := &asker{}
	k.Register("kubelet/node01", a)
	ask := func(req any) Response {
		k.Send("csi/node01", 0, req)
		k.AdvanceTo(k.Now().Add(time.Second))
		return a.got[len(a.got)-1]
	}
	publish := NodePublishVolume{ReplyTo: "kubelet/node01", Driver: LocalPath, VolumeID: "v", PodUID: "1"}
	if r := ask(publish); !strings.Contains(r.Err, "is not staged") {
		t.Errorf("published without a stage: %+v", r)
	}
	ask(NodeStageVolume{ReplyTo: "kubelet/node01", Driver: LocalPath, VolumeID: "v"})
	before := k.Snapshot()
	if r := ask(publish); r.Err != "" || r.Mount != LocalPath+"/v" {
		t.Errorf("got %+v", r)
	}
	k.Restore(before)
	if len(p.state.Published) != 0 {
		t.Error("going back left the volume published")
	}
	if r := ask(NodePublishVolume{ReplyTo: "kubelet/node01", Driver: LocalPath, VolumeID: "inline", Ephemeral: true}); r.Err != "" {
		t.Errorf("inline: %+v", r)
	}
	if r := ask(NodePublishVolume{ReplyTo: "kubelet/node01", Driver: "nosuch", VolumeID: "v"}); r.Err == "" {
		t.Error("a driver that is not there published a volume")
	}
}
