package autosave

import (
	"strconv"
	"strings"
	"time"
)

// Current as the id of a generation means the last committed one.
const Current = "current"

// Generation is one committed state of the document.
type Generation struct {
	_         [0]func() // disallow ==, whose code would be in the Wasm
	ID        string    // "<when its file was made, in Unix milliseconds, after the SavedAt of the previous one>-<Token>"
	SavedAt   time.Time // in whole milliseconds; unique under one token
	Bytes     int64
	Token     int64  // fencing token of the lease under which it was written
	SHA256    string // of its content, in lower-case hex
	Current   bool   // it is the last committed one
	Draft     string // id of the draft whose snapshot it is; empty if the page does not number snapshots
	Number    int64  // of that snapshot within the draft
	OwnerName string // of the page that saved it, if it has a name
	Name      string // of a pinned generation; empty if it is not pinned
}

// SavedID returns the ID that the current generation of a [RemoteStore] has while this machine keeps no copy of it. A draft may name it
// as its base, although the store has made a copy with another ID since then.
func SavedID(at time.Time, token int64) string { return generationID(at.UnixMilli(), token) }

// isBase reports whether text that was typed on the generation with this ID was typed on g.
func (g Generation) isBase(id string) bool { return g.ID == id || SavedID(g.SavedAt, g.Token) == id }

// describe stores the commit's description of its content in the generation, in the form in which the index returns it.
func (g *Generation) describe(c Commit) {
	g.Draft, g.OwnerName = validText(c.Draft), validText(c.OwnerName)
	g.Number = max(0, c.Number)
}

// generationID names a generation.
func generationID(at, token int64) string {
	return strconv.FormatInt(at, 10) + "-" + strconv.FormatInt(token, 10)
}

// parsePair reads two numbers "a-b", as in ids and in names of indexes.
func parsePair(s string) (a, b int64, ok bool) {
	left, right, ok := strings.Cut(s, "-")
	if !ok {
		return 0, 0, false
	}
	a, okA := parseNumber(left)
	b, okB := parseNumber(right)
	return a, b, okA && okB
}

// parseNumber reads a decimal number as this package writes it: no sign, no leading zero, at most 18 digits.
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
