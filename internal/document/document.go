// Package document converts between the ids of documents and their paths below "documents".
//
// The id of a document that lies below another one is the id of that one, followed by "~." and a component for each
// component of the path. In a component every byte except letters, digits and ". _ -" is "~" and two hexadecimal digits.
package document

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxID is the longest id, and MaxComponent the longest component of a path, in bytes.
	MaxID, MaxComponent = 128, 128
	// MaxDepth is how many components a path has at most; "documents" counts as another one.
	MaxDepth = 15
	// Part begins each component of an id below the first.
	Part = "~."
)

// IsID reports whether a text may be a document's id. "." and ".." may not: browsers take them for steps in a path.
func IsID(id string) bool {
	if id == "" || len(id) > MaxID || id == "." || id == ".." {
		return false
	}
	for i := range len(id) {
		if !IsPlain(id[i]) && id[i] != '~' {
			return false
		}
	}
	return true
}

// Path returns the path of the document with this id, below "documents". An id in any other spelling than that of [ID] is
// one component.
func Path(id string) []string {
	if !strings.Contains(id, Part) {
		return []string{id}
	}
	pieces := strings.Split(id, Part)
	path := []string{pieces[0]}
	for _, piece := range pieces[1:] {
		path = append(path, unescape(piece))
	}
	if spelled, ok := ID(path); !ok || spelled != id {
		return []string{id}
	}
	return path
}

// ID spells the id of the document at a path below "documents". The first component stands in the id as it is.
func ID(path []string) (string, bool) {
	if len(path) == 0 || len(path) > MaxDepth || slices.ContainsFunc(path, bad) {
		return "", false
	}
	id := path[0]
	for _, component := range path[1:] {
		id += Part + Escape(component)
	}
	return id, len(id) <= MaxID
}

// Escape spells a component of an id: every byte except letters, digits and ". _ -" is "~" and two hexadecimal digits.
func Escape(component string) string {
	var text []byte
	for i := range len(component) {
		if b := component[i]; IsPlain(b) {
			text = append(text, b)
		} else {
			text = append(text, '~', digits[b>>4], digits[b&0xf])
		}
	}
	return string(text)
}

// bad reports whether a text cannot be a component. One that is not UTF-8 would be another one in JSON, and so in the store.
func bad(component string) bool {
	return component == "" || len(component) > MaxComponent || !utf8.ValidString(component)
}

const digits = "0123456789ABCDEF"

// IsPlain reports whether an id contains the byte unchanged.
func IsPlain(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("._-", b) >= 0
}

// unescape decodes a component that ID encoded. A malformed component does not encode back to the same text.
func unescape(piece string) string {
	var text []byte
	for i := 0; i < len(piece); i++ {
		if piece[i] == '~' && i+2 < len(piece) {
			high, low := strings.IndexByte(digits, piece[i+1]), strings.IndexByte(digits, piece[i+2])
			if high >= 0 && low >= 0 {
				text = append(text, byte(high<<4|low))
				i += 2
				continue
			}
		}
		text = append(text, piece[i])
	}
	return string(text)
}
