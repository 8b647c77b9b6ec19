package autosave

import (
	"cmp"
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

// Defaults of [Limits].
const (
	DefaultMaxGenerations = 20
	DefaultMaxBytes       = 50 << 20
)

// Limits say how much history is kept. The oldest generations go first; the current
// one stays, however large it is.
type Limits struct {
	MaxGenerations int   // default 20
	MaxBytes       int64 // default 50 MiB, over all generations
}

func (l Limits) withDefaults() Limits {
	l.MaxGenerations = cmp.Or(l.MaxGenerations, DefaultMaxGenerations)
	l.MaxBytes = cmp.Or(l.MaxBytes, DefaultMaxBytes)
	return l
}

// kept splits the generations, which are in the order of their commits, into those
// that have to go and those that stay.
func (l Limits) kept(all []Generation) (gone, stay []Generation) {
	l = l.withDefaults()
	first := len(all)
	var bytes int64
	for i := len(all) - 1; i >= 0; i-- {
		bytes += all[i].Bytes
		newest := i == len(all)-1
		if !newest && (len(all)-i > l.MaxGenerations || bytes > l.MaxBytes) {
			break
		}
		first = i
	}
	return all[:first], all[first:]
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
