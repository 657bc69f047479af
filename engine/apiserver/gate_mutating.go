package apiserver

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"podwalk/engine/trace"
)

// pluginError is a refusal together with who refused.
type pluginError struct {
	error
	plugin   string
	verdicts []trace.PluginVerdict
}

func (e *pluginError) Unwrap() error { return e.error }

// The mutating-admission gate: each plugin in turn may change the object or refuse it. For
// the trace, what the object was before a plugin is a copy, which serves until one changes
// it: as it would be encoded, which is quicker to compare than the object.
func (s *Server) mutate(f *flight) error {
	a := f.attributes(s.k.Now().Wall())
	setKind(a)
	tell := f.Level == full
	var verdicts []trace.PluginVerdict
	var before runtime.Object
	var encoded []byte
	if tell && a.Object != nil {
		before, encoded = a.Object.DeepCopyObject(), encoding(a.Object)
		verdicts = make([]trace.PluginVerdict, 0, len(s.cfg.Mutators))
	}
	for _, m := range s.cfg.Mutators {
		if err := m.Admit(a, s); err != nil {
			verdicts = append(verdicts, trace.PluginVerdict{Plugin: m.Name(), Verdict: "denied", Message: statusOf(err).Message})
			return &pluginError{err, m.Name(), verdicts}
		}
		if !tell {
			continue
		}
		verdict := trace.PluginVerdict{Plugin: m.Name(), Verdict: "ok"}
		if before != nil {
			if now := encoding(a.Object); !bytes.Equal(now, encoded) {
				verdict.Verdict = "changed"
				after := a.Object.DeepCopyObject()
				s.hop(f, trace.Hop{Verb: m.Name(), Reason: m.Name(), Detail: trace.Change{Before: before, After: after}})
				before, encoded = after, now
			}
		}
		verdicts = append(verdicts, verdict)
	}
	f.Object = a.Object
	s.hop(f, trace.Hop{Verb: "Admit", Detail: trace.Admission{Plugins: verdicts}})
	return nil
}

// encoding is an object as protobuf, as the real server would put it into etcd.
func encoding(obj runtime.Object) []byte {
	b, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		panic(fmt.Sprintf("apiserver: a %T cannot be encoded: %v", obj, err))
	}
	return b
}
