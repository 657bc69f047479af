package apiserver

import (
	"podwalk/engine/apiserver/admission"
	"podwalk/engine/trace"
)

// The validating-admission gate: every plugin may refuse, none may change. It sees the
// object as it would be stored. The real server asks webhooks at the same time; here all
// are asked in order.
func (s *Server) validate(f *flight) error {
	a := f.attributes(s.k.Now().Wall())
	setKind(a)
	var verdicts []trace.PluginVerdict
	if f.Level == full {
		verdicts = make([]trace.PluginVerdict, 0, len(s.cfg.Validators))
	}
	f.Charges, f.Charged = nil, 0
	for _, v := range s.cfg.Validators {
		if w, ok := v.(admission.Warner); ok {
			f.Warnings = append(f.Warnings, w.Warn(a, s)...)
		}
		if err := v.Validate(a, s); err != nil {
			verdicts = append(verdicts, trace.PluginVerdict{Plugin: v.Name(), Verdict: "denied", Message: statusOf(err).Message})
			return &pluginError{err, v.Name(), verdicts}
		}
		if q, ok := v.(admission.Charger); ok && !f.Req.Options.DryRun {
			f.Charges = append(f.Charges, q.Charge(a, s)...)
		}
		if f.Level == full {
			verdicts = append(verdicts, trace.PluginVerdict{Plugin: v.Name(), Verdict: "ok"})
		}
	}
	s.hop(f, trace.Hop{Verb: "Validate", Detail: trace.Admission{Plugins: verdicts}})
	return nil
}
