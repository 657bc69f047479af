package kernel

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Rand is one named random stream. A new draw in one component does not shift the
// streams of the others.
type Rand struct {
	pcg rand.PCG
}

func newRand(seed uint64, name string) Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	var r Rand
	r.pcg.Seed(seed, h.Sum64())
	return r
}

// Rand returns the stream of that name, the same one at every call.
func (k *Kernel) Rand(name string) *Rand {
	r, ok := k.rand[name]
	if !ok {
		fresh := newRand(k.seed, name)
		r = &fresh
		k.rand[name] = r
	}
	return r
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 { return r.pcg.Uint64() }

// IntN returns a number in [0, n); n must be positive.
func (r *Rand) IntN(n int) int { return rand.New(&r.pcg).IntN(n) }

// Jitter returns d spread evenly by the given fraction to both sides: Jitter(10ms, 0.2)
// lies between 8 and 12 ms.
func (r *Rand) Jitter(d time.Duration, fraction float64) time.Duration {
	if d <= 0 || fraction <= 0 {
		return d
	}
	f := rand.New(&r.pcg).Float64()*2 - 1
	return d + time.Duration(float64(d)*fraction*f)
}

// nameAlphabet is that of k8s.io/apimachinery's rand.String: no vowels, no look-alikes.
const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// Suffix returns n characters as Kubernetes appends them to generated names.
func (r *Rand) Suffix(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = nameAlphabet[r.IntN(len(nameAlphabet))]
	}
	return string(b)
}

// UUID returns a random (version 4) UUID in its usual spelling.
func (r *Rand) UUID() string {
	const hex = "0123456789abcdef"
	var b [16]byte
	for i := 0; i < 16; i += 8 {
		u := r.Uint64()
		for j := range 8 {
			b[i+j] = byte(u >> (8 * j))
		}
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	out := make([]byte, 0, 36)
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, hex[c>>4], hex[c&15])
	}
	return string(out)
}

// Hex returns n random hexadecimal digits, as container ids have them.
func (r *Rand) Hex(n int) string {
	const hex = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = hex[r.Uint64()&15]
	}
	return string(b)
}
