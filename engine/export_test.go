package engine

// Keyframes tells how many moments the timeline keeps.
func (t *Timeline) Keyframes() int { return len(t.frames) }
