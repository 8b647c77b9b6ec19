package autosave

import "strings"

// appendText appends a field and its text, or nothing if the text is empty.
func appendText(b []byte, field, text string) []byte {
	if text == "" {
		return b
	}
	return appendQuoted(append(b, field...), text)
}

// appendQuoted appends the text as a JSON string. Each text has one spelling: a quote and a backslash get a backslash,
// a control character is \\u00xx, and every other byte stands for itself. Bytes that are not UTF-8 are replaced, as
// JSON requires.
func appendQuoted(b []byte, text string) []byte {
	b = append(b, '"')
	text = validText(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// validText returns the text with a replacement character for each run of bytes that is not UTF-8.
func validText(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

const hexDigits = "0123456789abcdef"

// textAfter returns the text after a field's name, or nothing if the field is absent.
func (c *cursor) textAfter(field string) string {
	if !strings.HasPrefix(c.rest, field) {
		return ""
	}
	c.literal(field)
	return c.quoted()
}

// quoted reads a text in the spelling of appendQuoted.
func (c *cursor) quoted() string {
	c.literal(`"`)
	var text []byte
	for i := 0; i < len(c.rest); i++ {
		switch c.rest[i] {
		case '"':
			c.rest = c.rest[i+1:]
			return string(text)
		case '\\':
			b, n := unescape(c.rest[i:])
			if n == 0 {
				c.failed = true
				return ""
			}
			text = append(text, b)
			i += n - 1
		default:
			text = append(text, c.rest[i])
		}
	}
	c.failed = true
	return ""
}

// unescape returns the byte that an escape sequence stands for, and the length of the sequence; the length is 0 if it
// is invalid.
func unescape(s string) (b byte, n int) {
	if len(s) >= 2 && (s[1] == '"' || s[1] == '\\') {
		return s[1], 2
	}
	if len(s) < 6 || s[:4] != `\u00` {
		return 0, 0
	}
	high, low := strings.IndexByte(hexDigits, s[4]), strings.IndexByte(hexDigits, s[5])
	if high < 0 || low < 0 {
		return 0, 0
	}
	return byte(high<<4 | low), 6
}
