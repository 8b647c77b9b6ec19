package options

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

var errNotJSON = errors.New("the options are not a text of JSON.stringify")

// parser reads JSON (RFC 8259) as JSON.stringify writes it: without spaces, and with an escape of four digits only for
// control characters and lone surrogates.
type parser struct {
	rest   string
	failed bool
}

// parse returns the value of a text: nil, a bool, float64, string, []any or map[string]any.
func parse(text string) (any, error) {
	p := parser{rest: text}
	v := p.value()
	if p.failed || p.rest != "" {
		return nil, errNotJSON
	}
	return v, nil
}

// next removes a literal, and reports whether the text went on with it.
func (p *parser) next(literal string) (found bool) {
	p.rest, found = strings.CutPrefix(p.rest, literal)
	return found
}

// must removes a literal with which the text has to go on.
func (p *parser) must(literal string) {
	if !p.next(literal) {
		p.fail()
	}
}

func (p *parser) fail() { p.rest, p.failed = "", true }

func (p *parser) value() any {
	switch {
	case p.next("null"):
		return nil
	case p.next("true"):
		return true
	case p.next("false"):
		return false
	case p.next(`"`):
		return p.text()
	case p.next("["):
		list := []any{}
		p.items("]", func() { list = append(list, p.value()) })
		return list
	case p.next("{"):
		fields := map[string]any{}
		p.items("}", func() {
			p.must(`"`)
			name := p.text()
			p.must(":")
			fields[name] = p.value()
		})
		return fields
	}
	return p.number()
}

// items reads what commas separate.
func (p *parser) items(end string, item func()) {
	if p.next(end) {
		return
	}
	for item(); p.next(","); {
		item()
	}
	p.must(end)
}

// text reads a text after its first quote. A lone surrogate becomes U+FFFD.
func (p *parser) text() string {
	var text []byte
	for !p.next(`"`) {
		plain := strings.IndexAny(p.rest, `"\`)
		if plain < 0 {
			p.fail()
			break
		}
		text = append(text, p.rest[:plain]...)
		if p.rest = p.rest[plain:]; p.next(`\`) {
			text = p.escaped(text)
		}
	}
	return string(text)
}

// letters may follow a backslash; escaped are the characters that they stand for.
const letters, escaped = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

func (p *parser) escaped(text []byte) []byte {
	if p.next("u") && len(p.rest) >= 4 {
		code, err := strconv.ParseUint(p.rest[:4], 16, 16)
		if err != nil {
			p.fail()
			return text
		}
		p.rest = p.rest[4:]
		return utf8.AppendRune(text, rune(code))
	}
	if p.rest == "" {
		return text
	}
	at := strings.IndexByte(letters, p.rest[0])
	if at < 0 {
		p.fail()
		return text
	}
	p.rest = p.rest[1:]
	return append(text, escaped[at])
}

// number reads a number. A whole number below 2^53 is exact; others differ from the page's by some units in the last
// place. The library's reader of numbers would take 10 KB of the Wasm.
func (p *parser) number() float64 {
	negative := p.next("-")
	n, _ := p.digits(0)
	scale := 0
	if p.next(".") {
		n, scale = p.digits(n)
	}
	if p.next("e") {
		down := !p.next("+") && p.next("-")
		exponent, _ := p.digits(0)
		if !down {
			exponent = -exponent
		}
		scale += int(min(max(exponent, -400), 400))
	}
	for ; scale < 0; scale++ {
		n *= 10
	}
	tens := 1.0
	for ; scale > 0; scale-- {
		tens *= 10
	}
	n /= tens
	if negative {
		return -n
	}
	return n
}

// digits appends at least one digit to a number, and returns how many.
func (p *parser) digits(n float64) (float64, int) {
	count := 0
	for count < len(p.rest) && p.rest[count] >= '0' && p.rest[count] <= '9' {
		n = n*10 + float64(p.rest[count]-'0')
		count++
	}
	p.rest = p.rest[count:]
	if count == 0 {
		p.fail()
	}
	return n, count
}
