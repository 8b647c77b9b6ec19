package soak

import (
	"fmt"
	"slices"
	"strings"
)

// archive records the acknowledged saves of editors, and finds what is missing later. Every line is typed once and no
// editor deletes any, so each content contains everything that was saved before it.
type archive struct {
	saved      map[string][]savedLine // by document
	editors    map[string][]int64     // their tokens, in the order in which they began
	late       map[string][]string    // lines that were written under the token of a former editor
	saves      int
	violations []string
}

type savedLine struct {
	line, client string
	token        int64
}

// told is the maximum number of missing lines that a violation names.
const told = 5

func newArchive() *archive {
	return &archive{saved: map[string][]savedLine{}, editors: map[string][]int64{}, late: map[string][]string{}}
}

// acknowledged is called when an editor receives the acknowledgement of its own lines.
func (a *archive) acknowledged(document, client string, token int64, lines []string) {
	a.saves++
	for _, line := range lines {
		a.saved[document] = append(a.saved[document], savedLine{line, client, token})
	}
}

// superseded reports whether the editor with a token has a successor, so that no write may use that token.
func (a *archive) superseded(document string, token int64) bool {
	editors := a.editors[document]
	i := slices.Index(editors, token)
	return i >= 0 && slices.Max(editors[i:]) > token
}

// writtenLate is called before an editor whose time is over writes lines past AutoSave.
func (a *archive) writtenLate(document string, lines []string) {
	a.late[document] = append(a.late[document], lines...)
}

// read records the content of a document and returns its lines.
func (a *archive) read(document, reader, content string) (present map[string]bool) {
	present = map[string]bool{}
	for _, line := range strings.Split(content, "\n") {
		if present[line] && line != "" {
			a.violations = append(a.violations, fmt.Sprintf("%s has the line %q twice, as %s sees it", document, line, reader))
		}
		present[line] = true
	}
	a.late[document] = slices.DeleteFunc(a.late[document], func(line string) bool {
		if present[line] {
			a.violations = append(a.violations, fmt.Sprintf("%s has the line %q of one whose time was over, as %s sees it", document, line, reader))
		}
		return present[line] // reported once
	})
	return present
}

// loaded is called when an editor begins with a content under a token.
func (a *archive) loaded(document, reader string, token int64, content string) {
	a.editors[document] = append(a.editors[document], token)
	present := a.read(document, reader, content)
	var missing []string
	a.saved[document] = slices.DeleteFunc(a.saved[document], func(s savedLine) bool {
		lost := s.token < token && !present[s.line]
		if lost {
			missing = append(missing, fmt.Sprintf("%q (saved by %s, token %d)", s.line, s.client, s.token))
		}
		return lost // reported once
	})
	if n := len(missing); n > 0 {
		a.violations = append(a.violations, fmt.Sprintf("%s lacks %d saved lines, as %s (token %d) sees it: %s",
			document, n, reader, token, strings.Join(missing[:min(n, told)], ", ")))
	}
}
