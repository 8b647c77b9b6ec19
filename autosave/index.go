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

// order sorts by insertion: there are few items, mostly in order already, and the library's sort would be a tenth of
// this package in the Wasm.
func order(n int, before func(i, j int) bool, swap func(i, j int)) {
	for i := 1; i < n; i++ {
		for j := i; j > 0 && before(j, j-1); j-- {
			swap(j, j-1)
		}
	}
}

var errBadIndex = errors.New("not a whole index")

// The pieces of an index. It is JSON, so that a person can read it. No other program writes it, so the decoder accepts
// exactly one spelling of each index.
const (
	indexHead   = `{"format":`
	indexAll    = `,"generations":[`
	indexID     = `{"id":"`
	indexAt     = `,"savedAt":`
	indexBytes  = `,"bytes":`
	indexSHA256 = `,"sha256":"`
	indexDraft  = `,"draft":`
	indexNumber = `,"number":`
	indexOwner  = `,"ownerName":`
	indexPinned = `,"name":`
	indexCheck  = `],"crc32":"`
	indexTail   = "\"}\n"
)

// The formats of an index. Format 1 has no savedAt: the id has the same time. Format 3 adds the fields from draft on,
// each of which is absent if it is empty.
const (
	oldestFormat  = 1
	savedAtFormat = 2
	indexFormat   = 3
)

// encodeIndex writes the generations, in the order of their commits, with a checksum: a torn index is never taken for a
// whole one.
func encodeIndex(generations []Generation) []byte { return spellIndex(indexFormat, generations) }

func spellIndex(format int64, generations []Generation) []byte {
	b := append(strconv.AppendInt([]byte(indexHead), format, 10), indexAll...)
	for i, g := range generations {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendGeneration(b, format, g), '}')
	}
	check := crc32.ChecksumIEEE(b)
	b = append(b, indexCheck...)
	b = append(b, hex32(check)...)
	return append(b, indexTail...)
}

func appendGeneration(b []byte, format int64, g Generation) []byte {
	b = append(append(append(b, indexID...), g.ID...), '"')
	if format >= savedAtFormat {
		b = strconv.AppendInt(append(b, indexAt...), g.SavedAt.UnixMilli(), 10)
	}
	b = strconv.AppendInt(append(b, indexBytes...), g.Bytes, 10)
	b = append(append(append(b, indexSHA256...), g.SHA256...), '"')
	if format < indexFormat {
		return b
	}
	return appendText(appendSnapshot(b, g), indexPinned, g.Name)
}

// appendSnapshot writes the snapshot to which the generation belongs, and the owner that saved it.
func appendSnapshot(b []byte, g Generation) []byte {
	b = appendText(b, indexDraft, g.Draft)
	if g.Number != 0 {
		b = strconv.AppendInt(append(b, indexNumber...), g.Number, 10)
	}
	return appendText(b, indexOwner, g.OwnerName)
}

func hex32(n uint32) string {
	s := strconv.FormatUint(uint64(n), 16)
	return strings.Repeat("0", 8-len(s)) + s
}

// decodeIndex reads an index of any format, in exactly the spelling of spellIndex.
func decodeIndex(b []byte) ([]Generation, error) {
	c := cursor{rest: string(b)}
	c.literal(indexHead)
	format := c.number()
	c.literal(indexAll)
	var generations []Generation
	for c.ok() && !strings.HasPrefix(c.rest, indexCheck) {
		if len(generations) > 0 {
			c.literal(",")
		}
		generations = append(generations, c.generation(format))
	}
	if !c.ok() || format < oldestFormat || format > indexFormat || string(spellIndex(format, generations)) != string(b) {
		return nil, errBadIndex
	}
	if len(generations) > 0 {
		generations[len(generations)-1].Current = true
	}
	return generations, nil
}

// cursor reads a text from its beginning. After the first malformed part it reads nothing more.
type cursor struct {
	rest   string
	failed bool
}

func (c *cursor) ok() bool { return !c.failed }

func (c *cursor) literal(s string) {
	rest, ok := strings.CutPrefix(c.rest, s)
	c.rest, c.failed = rest, c.failed || !ok
}

// until returns the text before the next end, and skips both.
func (c *cursor) until(end string) string {
	text, rest, ok := strings.Cut(c.rest, end)
	if c.failed = c.failed || !ok; c.failed {
		return ""
	}
	c.rest = rest
	return text
}

// number reads the next digits.
func (c *cursor) number() int64 {
	end := 0
	for end < len(c.rest) && c.rest[end] >= '0' && c.rest[end] <= '9' {
		end++
	}
	n, ok := parseNumber(c.rest[:end])
	c.rest, c.failed = c.rest[end:], c.failed || !ok
	return n
}

// numberAfter returns the number after a field's name, or 0 if the field is absent.
func (c *cursor) numberAfter(field string) int64 {
	if !strings.HasPrefix(c.rest, field) {
		return 0
	}
	c.literal(field)
	return c.number()
}

// snapshot reads the text that appendSnapshot writes.
func (c *cursor) snapshot(g *Generation) {
	g.Draft = c.textAfter(indexDraft)
	g.Number = c.numberAfter(indexNumber)
	g.OwnerName = c.textAfter(indexOwner)
}

func (c *cursor) generation(format int64) Generation {
	c.literal(indexID)
	made, token, ok := parsePair(c.until(`"`))
	g := begun(made, token)
	if format >= savedAtFormat {
		c.literal(indexAt)
		g.SavedAt = time.UnixMilli(c.number())
	}
	c.literal(indexBytes)
	g.Bytes = c.number()
	c.literal(indexSHA256)
	g.SHA256 = c.until(`"`)
	if format >= indexFormat {
		c.snapshot(&g)
		g.Name = c.textAfter(indexPinned)
	}
	c.literal("}")
	c.failed = c.failed || !ok || !isSHA256(g.SHA256)
	return g
}

// begun is a generation whose file was made at a time.
func begun(at, token int64) Generation {
	return Generation{ID: generationID(at, token), SavedAt: time.UnixMilli(at), Token: token}
}

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
