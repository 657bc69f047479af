package serve

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Shift moves times between the cluster's clock and the client's, so that what a client
// computes from its own clock (the ages in get and describe) comes out as if both were
// one. It touches typed time fields only, never text.
type Shift struct {
	by time.Duration // what is added on the way out
}

// NewShift returns the shift that makes the cluster's now the client's now. It is a whole
// number of seconds, for objects carry no finer times: from second to second of both
// clocks, so that an age, which is cut to seconds, is the cluster's to the second and
// never goes back from one command to the next.
func NewShift(cluster, client time.Time) Shift {
	return Shift{client.Truncate(time.Second).Sub(cluster.Truncate(time.Second))}
}

// never reports whether a time stands for none: no time, or the zero of Unix, which is when
// a process was started that never was.
func never(t time.Time) bool { return t.IsZero() || t.Unix() == 0 }

// Out brings one time to the client's clock.
func (s Shift) Out(t time.Time) time.Time {
	if never(t) {
		return t
	}
	return t.Add(s.by)
}

// In brings one time to the cluster's clock.
func (s Shift) In(t time.Time) time.Time {
	if never(t) {
		return t
	}
	return t.Add(-s.by)
}

// Outbound returns a copy of obj for the client's clock.
func (s Shift) Outbound(obj runtime.Object) runtime.Object {
	if obj == nil {
		return nil
	}
	obj = obj.DeepCopyObject()
	s.walk(reflect.ValueOf(obj))
	return obj
}

var (
	timeType  = reflect.TypeFor[metav1.Time]()
	microType = reflect.TypeFor[metav1.MicroTime]()
)

// holdsTime says whether a type can hold a time, so that the walk leaves out the rest of
// an object: most of it.
func holdsTime(t reflect.Type) bool {
	timeTypesMu.Lock()
	defer timeTypesMu.Unlock()
	return findTime(t)
}

var (
	timeTypesMu sync.Mutex
	timeTypes   = map[reflect.Type]bool{}
)

func findTime(t reflect.Type) bool {
	if has, ok := timeTypes[t]; ok {
		return has
	}
	timeTypes[t] = false // for a type that contains itself
	has := false
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		has = findTime(t.Elem())
	case reflect.Interface:
		has = true
	case reflect.Struct:
		has = t == timeType || t == microType
		for i := 0; i < t.NumField() && !has; i++ {
			has = t.Field(i).IsExported() && findTime(t.Field(i).Type)
		}
	}
	timeTypes[t] = has
	return has
}

func (s Shift) walk(v reflect.Value) {
	if !v.IsValid() || !holdsTime(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.walk(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			s.walk(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if e := it.Value(); e.Kind() == reflect.Pointer {
				s.walk(e)
				continue
			}
			c := reflect.New(it.Value().Type()).Elem()
			c.Set(it.Value())
			s.walk(c)
			v.SetMapIndex(it.Key(), c)
		}
	case reflect.Struct:
		s.structure(v)
	}
}

func (s Shift) structure(v reflect.Value) {
	switch v.Type() {
	case timeType:
		if t := v.Interface().(metav1.Time); !t.IsZero() && v.CanSet() {
			v.Set(reflect.ValueOf(metav1.NewTime(s.Out(t.Time))))
		}
		return
	case microType:
		if t := v.Interface().(metav1.MicroTime); !t.IsZero() && v.CanSet() {
			v.Set(reflect.ValueOf(metav1.NewMicroTime(s.Out(t.Time))))
		}
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			s.walk(v.Field(i))
		}
	}
}

// Inbound brings the times of a JSON body to the cluster's clock: those at places where
// the kind has a time field. A body without any comes back as it is, to the byte.
func (s Shift) Inbound(body []byte, kind runtime.Object) []byte {
	if s.by == 0 {
		return body
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var doc any
	if dec.Decode(&doc) != nil {
		return body // the decode gate says what is wrong with it
	}
	if !s.inboundValue(doc, reflect.TypeOf(kind), nil) {
		return body
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return body
	}
	return out
}

// inboundValue walks JSON along a Go type; set replaces the value itself.
func (s Shift) inboundValue(v any, t reflect.Type, set func(any)) (changed bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !holdsTime(t) {
		return false
	}
	switch v := v.(type) {
	case string:
		if t != timeType && t != microType || set == nil {
			return false
		}
		at, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			return false
		}
		layout := time.RFC3339
		if t == microType {
			layout = metav1.RFC3339Micro
		}
		set(s.In(at).UTC().Format(layout))
		return true
	case []any:
		if t.Kind() != reflect.Slice {
			return false
		}
		for i := range v {
			changed = s.inboundValue(v[i], t.Elem(), func(x any) { v[i] = x }) || changed
		}
	case map[string]any:
		if t.Kind() == reflect.Map {
			for k := range v {
				changed = s.inboundValue(v[k], t.Elem(), func(x any) { v[k] = x }) || changed
			}
			return changed
		}
		if t.Kind() == reflect.Struct {
			return s.inboundFields(v, t)
		}
	}
	return changed
}

func (s Shift) inboundFields(v map[string]any, t reflect.Type) (changed bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			ft := f.Type
			if ft.Kind() == reflect.Struct && ft != timeType {
				changed = s.inboundFields(v, ft) || changed
			}
			continue
		}
		if x, ok := v[name]; ok && name != "" {
			changed = s.inboundValue(x, f.Type, func(y any) { v[name] = y }) || changed
		}
	}
	return changed
}
