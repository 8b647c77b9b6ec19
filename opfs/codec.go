package opfs

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// The text of a table, one thing a line, strings quoted as in Go:
//
//	token 1763687000123
//	recovery 1763687030000 "client" "client"
//	entry granted "id" "client" 1763687000123456
//	want exclusive "project/.lock"
//	lease "project/.lock" "lease" "owner" "its name" 1763687000123 1763687000100 1763687030100 30000
//
// Numbers are Unix times and spans in milliseconds. The time at which an entry was asked for is in microseconds, and 0
// if it is not known. want and lease belong to the entry before them. There is exactly one text for each table, apart from
// the characters that are escaped: decode refuses every other text.

func (t *table) encode() []byte {
	var b []byte
	b = appendNumbers(append(b, "token"...), t.token)
	b = append(b, '\n')
	if r := t.recovery; r != nil {
		b = appendNumbers(append(b, "recovery"...), r.until.UnixMilli())
		for _, client := range r.seen {
			b = appendTexts(b, client)
		}
		b = append(b, '\n')
	}
	for _, e := range t.queue {
		b = appendNumbers(appendTexts(append(b, "entry "+e.state...), e.id, e.client), e.asked)
		b = append(b, '\n')
		for _, w := range e.wants {
			b = appendTexts(append(b, "want "+w.Mode...), w.Name)
			b = append(b, '\n')
		}
		if l := e.lease; l != nil {
			b = appendTexts(append(b, "lease"...), l.Resource, l.LeaseID, l.OwnerID, l.OwnerName)
			b = appendNumbers(b, l.Token, l.AcquiredAt.UnixMilli(), l.ExpiresAt.UnixMilli(), l.ttl.Milliseconds())
			b = append(b, '\n')
		}
	}
	return b
}

func appendNumbers(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return b
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = strconv.AppendQuote(append(b, ' '), s)
	}
	return b
}

// decode reads a table. It returns an error for every text that encode would not have written.
func decode(text []byte) (*table, error) {
	t := &table{}
	for n, line := range strings.SplitAfter(string(text), "\n") {
		if line == "" {
			continue // after the last line
		}
		s := scanner{rest: line}
		t.decodeLine(&s)
		if s.bad || s.rest != "\n" {
			return nil, errors.New("line " + strconv.Itoa(n+1) + " of the table cannot be understood")
		}
	}
	if again := t.encode(); !bytes.Equal(again, text) && !bytes.Equal(again, requoted(text)) {
		return nil, errors.New("the table was not written by this version")
	}
	return t, nil
}

// requoted returns a text of a table as encode writes it in this build: another build may escape other characters.
func requoted(text []byte) (b []byte) {
	for rest := string(text); ; {
		at := strings.IndexByte(rest, '"')
		if at < 0 {
			return append(b, rest...)
		}
		quoted, err := strconv.QuotedPrefix(rest[at:])
		if err != nil {
			return nil // encode writes no such text
		}
		s, _ := strconv.Unquote(quoted)
		b = strconv.AppendQuote(append(b, rest[:at]...), s)
		rest = rest[at+len(quoted):]
	}
}

func (t *table) decodeLine(s *scanner) {
	switch kind := s.word(); kind {
	case "token":
		t.token = s.number()
	case "recovery":
		t.recovery = &recovery{until: time.UnixMilli(s.number())}
		for !s.bad && s.rest != "\n" {
			t.recovery.seen = append(t.recovery.seen, s.text())
		}
	case "entry":
		e := &entry{state: state(s.word()), id: s.text(), client: s.text(), asked: s.number()}
		s.check(e.state == waiting || e.state == granted || e.state == recorded || e.state == present)
		t.queue = append(t.queue, e)
	case "want", "lease":
		if len(t.queue) == 0 {
			s.bad = true
			return
		}
		t.queue[len(t.queue)-1].decodeLine(s, kind)
	default:
		s.bad = true
	}
}

func (e *entry) decodeLine(s *scanner, kind string) {
	if kind == "want" {
		w := lock.Want{Mode: lock.Mode(s.word()), Name: s.text()}
		s.check(w.Mode == lock.Exclusive || w.Mode == lock.Shared)
		e.wants = append(e.wants, w)
		return
	}
	l := &lease{}
	l.Resource, l.LeaseID, l.OwnerID, l.OwnerName = s.text(), s.text(), s.text(), s.text()
	l.Token, l.AcquiredAt, l.ExpiresAt = s.number(), time.UnixMilli(s.number()), time.UnixMilli(s.number())
	ttl := s.number()
	s.check(ttl >= 0 && ttl <= int64(maxTTL/time.Millisecond))
	l.ttl = time.Duration(ttl) * time.Millisecond
	e.lease = l
}

// maxTTL is far below the largest time.Duration.
const maxTTL = 100 * 365 * 24 * time.Hour

// scanner reads the words of a line and remembers whether one of them was malformed.
type scanner struct {
	rest string
	bad  bool
}

func (s *scanner) check(ok bool) { s.bad = s.bad || !ok }

// word returns what comes before the next space or the end of the line.
func (s *scanner) word() string {
	s.rest = strings.TrimPrefix(s.rest, " ")
	end := strings.IndexAny(s.rest, " \n")
	if end <= 0 {
		s.bad = true
		return ""
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	return word
}

func (s *scanner) number() int64 {
	n, err := strconv.ParseInt(s.word(), 10, 64)
	s.check(err == nil)
	return n
}

func (s *scanner) text() string {
	s.rest = strings.TrimPrefix(s.rest, " ")
	quoted, err := strconv.QuotedPrefix(s.rest)
	if err != nil {
		s.bad = true
		return ""
	}
	s.rest = s.rest[len(quoted):]
	text, err := strconv.Unquote(quoted)
	s.check(err == nil)
	return text
}
