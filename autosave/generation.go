package autosave

import (
	"strconv"
	"strings"
	"time"
)

// Current as the id of a generation means the one that was committed last.
const Current = "current"

// Generation is one committed state of the document.
type Generation struct {
	ID        string    // "<when its file was made, in Unix milliseconds, after SavedAt of the one before>-<Token>"
	SavedAt   time.Time // in whole milliseconds; no two of one token are the same
	Bytes     int64
	Token     int64  // fencing token of the lease it was written under
	SHA256    string // of its content, in lower-case hex
	Current   bool   // it is the one that was committed last
	Draft     string // id of the draft whose snapshot it is; empty where the page numbers none
	Number    int64  // of that snapshot within the draft
	OwnerName string // of the page that saved it, where it has a name
	Name      string // of a pinned generation; empty where it is not pinned
}

// describe stores with the generation what the commit says about its content, in the form
// in which the index gives it back.
func (g *Generation) describe(c Commit) {
	g.Draft, g.OwnerName = validText(c.Draft), validText(c.OwnerName)
	g.Number = max(0, c.Number)
}

// generationID names a generation.
func generationID(at, token int64) string {
	return strconv.FormatInt(at, 10) + "-" + strconv.FormatInt(token, 10)
}

// parsePair reads two numbers "a-b", as ids and the names of indexes have them.
func parsePair(s string) (a, b int64, ok bool) {
	left, right, ok := strings.Cut(s, "-")
	if !ok {
		return 0, 0, false
	}
	a, okA := parseNumber(left)
	b, okB := parseNumber(right)
	return a, b, okA && okB
}

// parseNumber reads a decimal number as it is written by this package: no sign, no
// leading zero, at most 18 digits.
func parseNumber(s string) (int64, bool) {
	if s == "" || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}
