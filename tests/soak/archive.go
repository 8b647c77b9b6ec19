package soak

import (
	"fmt"
	"slices"
	"strings"
)

// archive writes down what editors were told is saved, and finds what is missing later. Every line is typed once and no
// editor deletes any, so each content has all that was saved before it.
type archive struct {
	saved      map[string][]savedLine // by document
	saves      int
	violations []string
}

type savedLine struct {
	line, client string
	token        int64
}

// told bounds how many missing lines a violation names.
const told = 5

func newArchive() *archive { return &archive{saved: map[string][]savedLine{}} }

// acknowledged is told when an editor hears that lines of its own are saved.
func (a *archive) acknowledged(document, client string, token int64, lines []string) {
	a.saves++
	for _, line := range lines {
		a.saved[document] = append(a.saved[document], savedLine{line, client, token})
	}
}

// loaded is told when an editor begins with a content, or someone reads one, under a token.
func (a *archive) loaded(document, reader string, token int64, content string) {
	present := map[string]bool{}
	for _, line := range strings.Split(content, "\n") {
		if present[line] && line != "" {
			a.violations = append(a.violations, fmt.Sprintf("%s has the line %q twice, as %s sees it", document, line, reader))
		}
		present[line] = true
	}
	var missing []string
	a.saved[document] = slices.DeleteFunc(a.saved[document], func(s savedLine) bool {
		lost := s.token < token && !present[s.line]
		if lost {
			missing = append(missing, fmt.Sprintf("%q (saved by %s, token %d)", s.line, s.client, s.token))
		}
		return lost // told once
	})
	if n := len(missing); n > 0 {
		a.violations = append(a.violations, fmt.Sprintf("%s lacks %d saved lines, as %s (token %d) sees it: %s",
			document, n, reader, token, strings.Join(missing[:min(n, told)], ", ")))
	}
}
