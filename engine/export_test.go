package engine

// Keyframes tells how many moments the timeline keeps.
func (t *Timeline) Keyframes() int { return len(t.frames) }

// KeyframesMax is how many it keeps at most.
const KeyframesMax = keyframesMax

// KeyframesEvery sets how many events lie between two of them.
func (t *Timeline) KeyframesEvery(turns uint64) { t.gap = turns }
