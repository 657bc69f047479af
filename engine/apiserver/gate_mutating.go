package apiserver

import (
	"reflect"

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
// the trace, what the object was before a plugin is a copy; it serves until one changes it.
func (s *Server) mutate(f *flight) error {
	a := f.attributes(s.k.Now().Wall())
	setKind(a)
	tell := f.Level == full
	var verdicts []trace.PluginVerdict
	var before runtime.Object
	if tell && a.Object != nil {
		before = a.Object.DeepCopyObject()
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
		verdict := "ok"
		if before != nil && !reflect.DeepEqual(before, a.Object) {
			verdict = "changed"
			after := a.Object.DeepCopyObject()
			s.hop(f, trace.Hop{Verb: m.Name(), Reason: m.Name(), Detail: trace.Change{Before: before, After: after}})
			before = after
		}
		verdicts = append(verdicts, trace.PluginVerdict{Plugin: m.Name(), Verdict: verdict})
	}
	f.Object = a.Object
	s.hop(f, trace.Hop{Verb: "Admit", Detail: trace.Admission{Plugins: verdicts}})
	return nil
}
