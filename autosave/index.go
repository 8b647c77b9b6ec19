package autosave

import (
	"errors"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// indexName is the name of an index file. A later one has a higher token or, under
// the same token, a higher number.
type indexName struct{ token, number int64 }

const indexSuffix = ".json"

func (n indexName) String() string { return generationID(n.token, n.number) + indexSuffix }

func parseIndexName(s string) (indexName, bool) {
	s, ok := strings.CutSuffix(s, indexSuffix)
	if !ok {
		return indexName{}, false
	}
	token, number, ok := parsePair(s)
	return indexName{token, number}, ok
}

func (n indexName) compare(other indexName) int {
	if n.token != other.token {
		return sign(n.token - other.token)
	}
	return sign(n.number - other.number)
}

func sign(n int64) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// order sorts by insertion: there are few, mostly in order already, and the library's
// sorting would be a tenth of this package in the Wasm.
func order(n int, before func(i, j int) bool, swap func(i, j int)) {
	for i := 1; i < n; i++ {
		for j := i; j > 0 && before(j, j-1); j-- {
			swap(j, j-1)
		}
	}
}

var errBadIndex = errors.New("not a whole index")

// The pieces of an index. It is JSON for those who look at it; but as nobody else
// writes it, exactly one spelling of each index is accepted.
const (
	indexHead   = `{"format":2,"generations":[`
	indexID     = `{"id":"`
	indexAt     = `","savedAt":`
	indexBytes  = `,"bytes":`
	indexSHA256 = `,"sha256":"`
	indexNext   = `"}`
	indexCheck  = `],"crc32":"`
	indexTail   = "\"}\n"
)

// encodeIndex spells the generations, in the order of their commits, with a checksum of
// the spelling: a torn index is never taken for a whole one.
func encodeIndex(generations []Generation) []byte {
	b := []byte(indexHead)
	for i, g := range generations {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, indexID...), g.ID...)
		b = strconv.AppendInt(append(b, indexAt...), g.SavedAt.UnixMilli(), 10)
		b = strconv.AppendInt(append(b, indexBytes...), g.Bytes, 10)
		b = append(append(b, indexSHA256...), g.SHA256...)
		b = append(b, indexNext...)
	}
	check := crc32.ChecksumIEEE(b)
	b = append(b, indexCheck...)
	b = append(b, hex32(check)...)
	return append(b, indexTail...)
}

func hex32(n uint32) string {
	s := strconv.FormatUint(uint64(n), 16)
	return strings.Repeat("0", 8-len(s)) + s
}

// decodeIndex reads what encodeIndex wrote, and nothing else.
func decodeIndex(b []byte) ([]Generation, error) {
	c := cursor{rest: string(b)}
	c.literal(indexHead)
	var generations []Generation
	for c.ok() && !strings.HasPrefix(c.rest, indexCheck) {
		if len(generations) > 0 {
			c.literal(",")
		}
		generations = append(generations, c.generation())
	}
	read := len(b) - len(c.rest)
	c.literal(indexCheck)
	check := c.until(indexTail)
	if !c.ok() || c.rest != "" || check != hex32(crc32.ChecksumIEEE(b[:read])) {
		return nil, errBadIndex
	}
	if len(generations) > 0 {
		generations[len(generations)-1].Current = true
	}
	return generations, nil
}

// cursor reads a text from its beginning. After the first thing that is not as it
// should be it reads nothing more.
type cursor struct {
	rest   string
	failed bool
}

func (c *cursor) ok() bool { return !c.failed }

func (c *cursor) literal(s string) {
	rest, ok := strings.CutPrefix(c.rest, s)
	c.rest, c.failed = rest, c.failed || !ok
}

// until returns what stands before the next end, and passes both.
func (c *cursor) until(end string) string {
	text, rest, ok := strings.Cut(c.rest, end)
	if c.failed = c.failed || !ok; c.failed {
		return ""
	}
	c.rest = rest
	return text
}

func (c *cursor) generation() Generation {
	c.literal(indexID)
	made, token, okID := parsePair(c.until(indexAt))
	at, okAt := parseNumber(c.until(indexBytes))
	bytes, okBytes := parseNumber(c.until(indexSHA256))
	sum := c.until(indexNext)
	c.failed = c.failed || !okID || !okAt || !okBytes || !isSHA256(sum)
	g := begun(made, token)
	g.SavedAt, g.Bytes, g.SHA256 = time.UnixMilli(at), bytes, sum
	return g
}

// begun is a generation whose file was made at a time.
func begun(at, token int64) Generation {
	return Generation{ID: generationID(at, token), SavedAt: time.UnixMilli(at), Token: token}
}

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
