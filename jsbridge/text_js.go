//go:build js && wasm

package jsbridge

import (
	"strconv"
	"time"

	"github.com/hack-pad/safejs"
)

// Text is a value encoded as JSON. It crosses to JavaScript in one call; an object would cross field by field, and each
// field costs as much as the whole text.
type Text string

// Value returns the value that a text encodes.
func (t Text) Value() (safejs.Value, error) {
	parser, err := safejs.Global().Get("JSON")
	if err != nil {
		return parser, err
	}
	return parser.Call("parse", string(t))
}

// Object writes the text of an object, field by field. The zero value has no fields.
type Object struct{ text []byte }

// field begins a field.
func (o *Object) field(name string) []byte {
	before := byte(',')
	if o.text == nil {
		o.text, before = make([]byte, 0, 512), '{'
	}
	return append(appendText(append(o.text, before), name), ':')
}

// JSON returns the text.
func (o *Object) JSON() Text {
	if o.text == nil {
		return "{}"
	}
	return Text(append(o.text, '}'))
}

// Text adds a text.
func (o *Object) Text(name, value string) { o.text = appendText(o.field(name), value) }

// Optional adds a text, unless it is empty.
func (o *Object) Optional(name, value string) {
	if value != "" {
		o.Text(name, value)
	}
}

// Whole adds a whole number.
func (o *Object) Whole(name string, n int64) { o.text = strconv.AppendInt(o.field(name), n, 10) }

// Moment adds a time in milliseconds since 1970, unless it is unknown.
func (o *Object) Moment(name string, t time.Time) {
	if !t.IsZero() {
		o.Whole(name, t.UnixMilli())
	}
}

// Duration adds a time in milliseconds.
func (o *Object) Duration(name string, d time.Duration) {
	o.text = appendMilliseconds(o.field(name), d)
}

// Flag adds a boolean.
func (o *Object) Flag(name string, yes bool) { o.text = strconv.AppendBool(o.field(name), yes) }

// Add adds any value.
func (o *Object) Add(name string, value Text) { o.text = append(o.field(name), value...) }

// List encodes a list.
func List[T any](items []T, encode func(T) Text) Text {
	text := []byte{'['}
	for i, item := range items {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, encode(item)...)
	}
	return Text(append(text, ']'))
}

// Texts encodes a list of texts.
func Texts(list []string) Text { return List(list, quoted) }

// Paths encodes a list of paths.
func Paths(paths [][]string) Text { return List(paths, Texts) }

func quoted(s string) Text { return Text(appendText(nil, s)) }

// whole encodes a whole number.
func whole(n int64) Text { return Text(strconv.FormatInt(n, 10)) }

// JSON encodes the fields of a request: texts, whole numbers and lists of them, booleans and paths. Any other value becomes null.
func JSON(fields map[string]any) Text {
	var o Object
	for name, v := range fields {
		switch v := v.(type) {
		case string:
			o.Text(name, v)
		case bool:
			o.Flag(name, v)
		case int:
			o.Whole(name, int64(v))
		case int64:
			o.Whole(name, v)
		case []int64:
			o.Add(name, List(v, whole))
		case [][]string:
			o.Add(name, Paths(v))
		default:
			o.Add(name, "null")
		}
	}
	return o.JSON()
}

// appendMilliseconds formats the whole part and the fraction itself: the library's code and tables for floating-point
// numbers would take 20 KB of the Wasm.
func appendMilliseconds(b []byte, d time.Duration) []byte {
	if d < 0 {
		b, d = append(b, '-'), -d
	}
	b = strconv.AppendInt(b, int64(d/time.Millisecond), 10)
	rest := d % time.Millisecond
	if rest > 0 {
		b = append(b, '.')
	}
	for digit := time.Millisecond / 10; rest > 0; digit /= 10 {
		b = append(b, byte('0'+rest/digit))
		rest %= digit
	}
	return b
}

// appendText escapes the characters that JSON does not allow in a string.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// plain returns the representation of a value that crosses to JavaScript, and whether it is JSON.
func plain(v any) (value any, isText bool) {
	if t, ok := v.(Text); ok {
		return string(t), true
	}
	return v, false
}
