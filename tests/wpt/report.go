package wpt

import (
	"fmt"
	"strings"
)

// result is the result of one test, as testharness.js reports it; status 0 is a pass.
type result struct {
	Name, Message string
	Status        int
}

// A report counts the results of each kind of locks in each context.
type report struct{ rows []*row }

type row struct {
	context string
	locks   locks
	tests   map[string]int // of each file
	starts  map[bool]*tally
}

// tally counts the runs that began with a ready runtime, or with one that was not ready.
type tally struct{ runs, passed int }

func (r *report) row(context string, l locks) *row {
	for _, row := range r.rows {
		if row.context == context && row.locks == l {
			return row
		}
	}
	row := &row{context: context, locks: l, tests: map[string]int{}, starts: map[bool]*tally{false: {}, true: {}}}
	r.rows = append(r.rows, row)
	return row
}

// String returns the table of docs/web-locks.md.
func (r *report) String() string {
	var b strings.Builder
	b.WriteString("| locks | host | context | tests | passed, cold | passed, warm |\n|---|---|---|--:|--:|--:|\n")
	for _, row := range r.rows {
		tests := 0
		for _, n := range row.tests {
			tests += n
		}
		cold, warm := row.starts[false], row.starts[true]
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d of %d | %d of %d |\n", row.locks.name(), row.locks.Host, row.context, tests, cold.passed, cold.runs, warm.passed, warm.runs)
	}
	return b.String()
}
