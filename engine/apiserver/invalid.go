package apiserver

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalid is the answer to an object that breaks its kind's rules.
func invalid(kind schema.GroupKind, name string, errs field.ErrorList) error {
	return apierrors.NewInvalid(kind, name, ordered(errs))
}

// ordered sorts the errors of one map among themselves: upstream walks labels, resources
// and their kind in the map's random order, and two runs must say the same.
func ordered(errs field.ErrorList) field.ErrorList {
	for i := 0; i < len(errs); {
		j := i + 1
		for j < len(errs) && mapOf(errs[j].Field) == mapOf(errs[i].Field) {
			j++
		}
		slices.SortStableFunc(errs[i:j], func(a, b *field.Error) int {
			if c := strings.Compare(a.Field, b.Field); c != 0 {
				return c
			}
			return strings.Compare(fmt.Sprint(a.BadValue), fmt.Sprint(b.BadValue))
		})
		i = j
	}
	return errs
}

// mapOf cuts the key of a map off a field's path: requests[cpu] belongs to requests, but
// containers[0] is an element of a list, whose order counts.
func mapOf(path string) string {
	at := strings.LastIndexByte(path, '[')
	if at < 0 || !strings.HasSuffix(path, "]") || strings.Trim(path[at:], "[]0123456789") == "" {
		return path
	}
	return path[:at]
}
