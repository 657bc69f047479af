package lessons

import (
	"fmt"
	"strings"
)

// prose is one language's words of a lesson. The file is plain Markdown with a little
// shape:
//
//	# Title of the lesson
//
//	## anchor | Title of the step
//
//	Text, with {{pod "spec.nodeName"}} where the run fills something in.
//
//	? The question
//	- choice: what it says
//	  > what the learner is told who chose it
type prose struct {
	title    string
	sections map[string]section
	order    []string
}

type section struct {
	title    string
	body     string
	question string
	choices  map[string]choice
}

type choice struct{ label, feedback string }

func parseProse(text string) (prose, error) {
	p := prose{sections: map[string]section{}}
	var at string
	var cur section
	var last string // choice that feedback belongs to
	flush := func() {
		if at != "" {
			cur.body = strings.TrimSpace(cur.body)
			p.sections[at] = cur
			p.order = append(p.order, at)
		}
		cur, last = section{}, ""
	}
	for n, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "# "):
			p.title = strings.TrimSpace(line[2:])
		case strings.HasPrefix(line, "## "):
			flush()
			anchor, title, ok := strings.Cut(line[3:], "|")
			if !ok {
				return p, fmt.Errorf("line %d: a heading is \"## anchor | Title\"", n+1)
			}
			at, cur.title = strings.TrimSpace(anchor), strings.TrimSpace(title)
			if _, twice := p.sections[at]; twice {
				return p, fmt.Errorf("line %d: the section %q stands here twice", n+1, at)
			}
		case at == "":
			if strings.TrimSpace(line) != "" {
				return p, fmt.Errorf("line %d: text before the first \"## anchor | Title\"", n+1)
			}
		case strings.HasPrefix(line, "? "):
			cur.question = strings.TrimSpace(line[2:])
			cur.choices = map[string]choice{}
		case cur.choices != nil && strings.HasPrefix(line, "- "):
			id, label, ok := strings.Cut(line[2:], ":")
			if !ok {
				return p, fmt.Errorf("line %d: a choice is \"- id: words\"", n+1)
			}
			last = strings.TrimSpace(id)
			cur.choices[last] = choice{label: strings.TrimSpace(label)}
		case cur.choices != nil && strings.HasPrefix(strings.TrimSpace(line), ">"):
			if last == "" {
				return p, fmt.Errorf("line %d: feedback without a choice", n+1)
			}
			c := cur.choices[last]
			c.feedback = strings.TrimSpace(c.feedback + " " + strings.TrimSpace(strings.TrimSpace(line)[1:]))
			cur.choices[last] = c
		case cur.choices == nil:
			cur.body += line + "\n"
		case strings.TrimSpace(line) != "":
			return p, fmt.Errorf("line %d: after a question only choices and feedback may stand", n+1)
		}
	}
	flush()
	if p.title == "" {
		return p, fmt.Errorf("the title (\"# …\") is missing")
	}
	return p, nil
}

// covers reports what a step needs and the words lack.
func (p prose) covers(s Step) error {
	sec, ok := p.sections[s.At]
	if !ok {
		return fmt.Errorf("the section %q is missing", s.At)
	}
	if sec.title == "" || sec.body == "" {
		return fmt.Errorf("the section %q has no title or no text", s.At)
	}
	if s.Ask == nil {
		if sec.question != "" {
			return fmt.Errorf("it asks a question that the step does not have")
		}
		return nil
	}
	if sec.question == "" {
		return fmt.Errorf("the question is missing")
	}
	for _, id := range s.Ask.Choices {
		c, ok := sec.choices[id]
		if !ok || c.label == "" || c.feedback == "" {
			return fmt.Errorf("the choice %q has no words or no feedback", id)
		}
	}
	if len(sec.choices) != len(s.Ask.Choices) {
		return fmt.Errorf("it has %d choices, the step %d", len(sec.choices), len(s.Ask.Choices))
	}
	return nil
}
