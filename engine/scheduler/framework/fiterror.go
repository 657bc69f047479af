package framework

import (
	"fmt"
	"slices"
	"strings"
)

// FitErrorMessage is the text of a Pod that fits nowhere, as it stands in its event:
// "0/N nodes are available: <PreFilter>. <reasons with their counts>. <PostFilter>".
func FitErrorMessage(numNodes int, preFilter string, v *Verdicts, postFilter string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "0/%v nodes are available:", numNodes)
	if preFilter != "" {
		fmt.Fprintf(&b, " %v.", preFilter)
	} else if reasons := histogram(numNodes, v); len(reasons) > 0 {
		fmt.Fprintf(&b, " %v.", strings.Join(reasons, ", "))
	}
	if postFilter != "" {
		fmt.Fprintf(&b, " %v", postFilter)
	}
	return b.String()
}

// histogram counts the reasons; they are sorted as strings, their counts included.
func histogram(numNodes int, v *Verdicts) []string {
	counts := map[string]int{}
	for i := range v.Nodes {
		for _, r := range v.Nodes[i].Status.Reasons {
			counts[r]++
		}
	}
	if absent := numNodes - len(v.Nodes); absent > 0 && v.Absent != nil {
		for _, r := range v.Absent.Reasons {
			counts[r] += absent
		}
	}
	out := make([]string, 0, len(counts))
	for r, n := range counts {
		out = append(out, fmt.Sprintf("%v %v", n, r))
	}
	slices.Sort(out)
	return out
}
