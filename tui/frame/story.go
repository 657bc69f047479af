package frame

import (
	"podwalk/engine/trace"
	"podwalk/tui/i18n"
)

// Story is what a lesson adds to a run: its own words at some hops, questions, and which
// hops are worth a stop. A player without one tells the general story of each stage.
type Story interface {
	Title(l i18n.Lang) string
	// Passage returns the words for the moment of f; false leaves it to the general story.
	Passage(f *Frame) (Passage, bool)
	// Answer takes the learner's choice for a question.
	Answer(question string, choice int)
	// Matters says whether the next-key stops at hop i; known is false to leave it to the
	// general rule.
	Matters(i int, h trace.Hop) (stop, known bool)
}

// Passage is a piece of a lesson.
type Passage struct {
	Title    string
	Text     string // paragraphs; `code` and **strong** allowed
	Question *Question
	Zoom     string // id of a diagram to show; "" follows the stage
}

// Question is asked before something is revealed. The story does not go on until it is
// answered.
type Question struct {
	ID       string
	Prompt   string
	Choices  []Choice
	Answered int  // the choice taken, -1 for none yet
	Onward   bool // after the answer the story goes on
}

// Choice is one possible answer and what is said to whoever takes it.
type Choice struct {
	Text     string
	Right    bool
	Feedback string
}

// Open reports whether the question waits for an answer.
func (q *Question) Open() bool { return q != nil && q.Answered < 0 }
