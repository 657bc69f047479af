package kernel

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
)

// hashSeed is shared by all hashes of one process; hashes are compared, never stored.
var hashSeed = maphash.MakeSeed()

// Hash digests any value made of data: structs (unexported fields too), maps in any
// order, slices, pointers (by what they point to). It panics on a func or a channel:
// state that holds one could not be copied either.
func Hash(v any) uint64 {
	h := newHasher()
	h.value(v)
	return h.sum()
}

type hasher struct {
	h   maphash.Hash
	buf [8]byte
}

func newHasher() *hasher {
	h := &hasher{}
	h.h.SetSeed(hashSeed)
	return h
}

func (h *hasher) sum() uint64 { return h.h.Sum64() }

func (h *hasher) value(v any) { h.walk(reflect.ValueOf(v), 0) }

func (h *hasher) num(n uint64) {
	binary.LittleEndian.PutUint64(h.buf[:], n)
	h.h.Write(h.buf[:])
}

// hashDepthMax guards against a cycle of pointers.
const hashDepthMax = 200

// hashable is what an ordered tree offers: it is hashed by its items, not by its nodes,
// whose layout depends on history.
type hashable interface{ HashState() any }

func (h *hasher) walk(v reflect.Value, depth int) {
	if depth > hashDepthMax {
		panic("kernel: state is nested too deep to hash: a cycle of pointers?")
	}
	if !v.IsValid() {
		h.num(0)
		return
	}
	if v.CanInterface() {
		if s, ok := v.Interface().(hashable); ok && !(v.Kind() == reflect.Pointer && v.IsNil()) {
			h.walk(reflect.ValueOf(s.HashState()), depth+1)
			return
		}
	}
	h.num(uint64(v.Kind()))
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			h.num(1)
		} else {
			h.num(0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.num(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		h.num(v.Uint())
	case reflect.Float32, reflect.Float64:
		h.num(math.Float64bits(v.Float()))
	case reflect.String:
		h.num(uint64(v.Len()))
		h.h.WriteString(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.num(0)
			return
		}
		if v.Kind() == reflect.Interface {
			h.h.WriteString(v.Elem().Type().String())
		}
		h.walk(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		h.num(uint64(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			h.h.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			h.walk(v.Index(i), depth+1)
		}
	case reflect.Map:
		h.mapping(v, depth)
	case reflect.Struct:
		h.structure(v, depth)
	default:
		panic(fmt.Sprintf("kernel: a %s in state cannot be hashed", v.Type()))
	}
}

func (h *hasher) mapping(v reflect.Value, depth int) {
	sums := make([]uint64, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		pair := newHasher()
		pair.walk(it.Key(), depth+1)
		pair.walk(it.Value(), depth+1)
		sums = append(sums, pair.sum())
	}
	slices.Sort(sums)
	h.num(uint64(len(sums)))
	for _, s := range sums {
		h.num(s)
	}
}

func (h *hasher) structure(v reflect.Value, depth int) {
	t := v.Type()
	for i := range t.NumField() {
		if name := t.Field(i).Name; name == "loc" && t.PkgPath() == "time" {
			continue // a time zone is a pointer to process-wide data
		}
		h.walk(v.Field(i), depth+1)
	}
}
