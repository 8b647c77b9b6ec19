//go:build js && wasm

package jsbridge

import (
	"strconv"
	"time"
)

// Text is a value encoded as JSON. It crosses to JavaScript in one call; an object would cross field by field, and each
// field costs as much as the whole text.
type Text string

// JSON encodes the types that syscall/js converts into objects (maps, slices, texts, whole numbers and booleans),
// paths, and durations in milliseconds. Any other value becomes null.
func JSON(v any) Text { return Text(appendJSON(make([]byte, 0, 512), v)) }

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendText(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case time.Duration:
		return appendMilliseconds(b, v)
	case []int64:
		b = append(b, '[')
		for i, n := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, n, 10)
		}
		return append(b, ']')
	case [][]string:
		return appendJSON(b, EncodePaths(v))
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for name, field := range v {
			if b[len(b)-1] != '{' {
				b = append(b, ',')
			}
			b = append(appendText(b, name), ':')
			b = appendJSON(b, field)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
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
