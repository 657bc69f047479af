package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"podwalk/engine/kernel"
	"podwalk/engine/stage"
)

// Story returns the hops in focus, numbered 1 to n without gaps; a cause that lies in the
// background is replaced by the nearest cause in focus before it, or 0.
func (l *Log) Story() []Hop { return new(Follower).Next(l) }

// Follower tells the story of a log while it grows.
type Follower struct {
	told   int
	last   uint64            // the Seq of the last hop that was told
	number map[uint64]uint64 // by Seq
}

// Next returns the hops that have come since the last call, numbered as in Story.
func (f *Follower) Next(l *Log) []Hop {
	if f.number == nil {
		f.number = map[uint64]uint64{}
	}
	from := f.told
	if f.told > 0 && l.hops[f.told-1].Seq != f.last {
		from = 0 // a hop was promoted that lies before those that were told
	}
	var out []Hop
	for _, h := range l.hops[from:] {
		if f.number[h.Seq] == 0 {
			f.number[h.Seq] = uint64(len(f.number) + 1)
			out = append(out, h)
		}
	}
	if f.told = len(l.hops); f.told > 0 {
		f.last = l.hops[f.told-1].Seq
	}
	for i := range out {
		cause := out[i].Cause
		for cause != 0 && f.number[cause] == 0 {
			h, ok := l.Get(cause)
			if !ok {
				cause = 0
				break
			}
			cause = h.Cause
		}
		out[i].Seq, out[i].Cause = f.number[out[i].Seq], f.number[cause]
	}
	return out
}

// Printable returns s as it can be shown on a terminal: what is not printable (escape
// sequences, marks that turn the direction of writing) is written as an escape. Line
// breaks stay.
func Printable(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, w := 0, 0; i < len(s); i += w {
		var r rune
		r, w = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && w == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unprintable(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }

// Line returns a hop as one line with fixed columns: time since origin, badge, stage,
// outcome, who asked whom for what, about which object, and the literal words.
func (h Hop) Line(origin kernel.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10.6f  %-2s %-20s %-7s ", h.At.Sub(origin).Seconds(), h.Step(), h.Stage, h.Outcome)
	b.WriteString(h.Edge())
	if o := h.Object.String(); o != "" {
		b.WriteString("  " + o)
	}
	if h.Reason != "" {
		b.WriteString("  " + h.Reason)
	}
	if h.Message != "" {
		b.WriteString(": " + h.Message)
	}
	return Printable(strings.ReplaceAll(b.String(), "\n", " "))
}

// Edge returns "from → to verb" in ASCII.
func (h Hop) Edge() string {
	switch {
	case h.From == "" && h.To == "":
		return h.Verb
	case h.To == "" || h.From == h.To:
		return string(h.From) + " " + h.Verb
	}
	return string(h.From) + " -> " + string(h.To) + " " + h.Verb
}

type hopJSON struct {
	Seq      uint64          `json:"seq"`
	Cause    uint64          `json:"cause"`
	AtNS     int64           `json:"at_ns"`
	Step     stage.Step      `json:"step"`
	Stage    stage.ID        `json:"stage"`
	From     stage.Component `json:"from"`
	To       stage.Component `json:"to"`
	Verb     string          `json:"verb"`
	Object   string          `json:"object"`
	Revision int64           `json:"revision"`
	Outcome  Outcome         `json:"outcome"`
	Reason   string          `json:"reason"`
	Message  string          `json:"message"`
}

// WriteJSON writes the hops as one JSON object a line; at_ns counts from origin.
func WriteJSON(w io.Writer, hops []Hop, origin kernel.Time) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, h := range hops {
		err := enc.Encode(hopJSON{
			h.Seq, h.Cause, int64(h.At.Sub(origin)), h.Step(), h.Stage, h.From, h.To, h.Verb, h.Object.String(),
			h.Revision, h.Outcome, h.Reason, h.Message,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteMermaid writes the hops as a Mermaid sequence diagram.
func WriteMermaid(w io.Writer, hops []Hop, origin kernel.Time) error {
	var b strings.Builder
	b.WriteString("sequenceDiagram\n  autonumber\n")
	ids := map[stage.Component]string{}
	for _, h := range hops {
		for _, c := range []stage.Component{h.From, h.To} {
			if c != "" && ids[c] == "" {
				ids[c] = fmt.Sprintf("c%d", len(ids)+1)
				fmt.Fprintf(&b, "  participant %s as %s\n", ids[c], c)
			}
		}
	}
	var step stage.Step
	for _, h := range hops {
		from, to := ids[h.From], ids[h.To]
		if from == "" {
			from = to
		}
		if to == "" {
			to = from
		}
		if from == "" {
			continue
		}
		if h.Step() != step {
			step = h.Step()
			fmt.Fprintf(&b, "  Note over %s: step %s · %s\n", from, step, h.At.Sub(origin).Round(time.Microsecond))
		}
		arrow := "->>"
		if h.Bad() {
			arrow = "-x"
		}
		fmt.Fprintf(&b, "  %s%s%s: %s\n", from, arrow, to, mermaidText(h))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func mermaidText(h Hop) string {
	t := strings.TrimSpace(h.Verb + " " + h.Object.String())
	if h.Reason != "" {
		t += " " + h.Reason
	}
	return Printable(strings.NewReplacer("\n", " ", ";", ",", "#", "").Replace(t))
}
