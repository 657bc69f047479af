package engine

import (
	"testing"

	"podwalk/engine/kube"
)

// TestEveryKindHasAFate: of each kind that is stored it is said what has to become of it.
func TestEveryKindHasAFate(t *testing.T) {
	for _, k := range kube.Kinds() {
		n := 0
		_, judged := judges[k.Kind.Kind]
		for _, in := range []bool{judged, inert[k.Kind.Kind], trueOnceStored[k.Kind.Kind]} {
			if in {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is in %d of the three lists", k.Kind.Kind, n)
		}
	}
}
