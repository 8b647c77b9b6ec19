package sessions

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckName returns ErrName if a text cannot be a holder's name.
func CheckName(name string) error {
	if utf8.RuneCountInString(name) > maxName || !Readable(name) {
		return ErrName
	}
	return nil
}

// invisible are letters and marks that show nothing: fillers, the grapheme joiner, Mongolian variation selectors, the blank of
// Braille and the note without a head. Bidirectional and zero-width characters are not printable anyway.
var invisible = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x034f, Hi: 0x034f, Stride: 1}, {Lo: 0x115f, Hi: 0x1160, Stride: 1}, {Lo: 0x17b4, Hi: 0x17b5, Stride: 1},
	{Lo: 0x180b, Hi: 0x180f, Stride: 1}, {Lo: 0x2800, Hi: 0x2800, Stride: 1}, {Lo: 0x3164, Hi: 0x3164, Stride: 1},
	{Lo: 0xffa0, Hi: 0xffa0, Stride: 1},
}, R32: []unicode.Range32{{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, {Lo: 0x1d159, Hi: 0x1d159, Stride: 1}}}

// Readable reports whether a name is what it looks like: valid, not blank, and without characters that show nothing or
// turn the direction of writing. The selectors of an emoji's presentation and of an ideograph's form may follow one, but are no name.
func Readable(name string) bool {
	if !utf8.ValidString(name) || strings.TrimSpace(name) == "" {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r != '\ufe0f' && (!unicode.IsPrint(r) || unicode.Is(invisible, r))
	}) && strings.TrimFunc(name, func(r rune) bool { return unicode.Is(unicode.Variation_Selector, r) || unicode.IsSpace(r) }) != ""
}

// Clean returns the readable part of a name that a proxy or a provider states. It is empty if nothing is readable.
func Clean(name string) string {
	list := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		if r != ' ' && (!unicode.IsPrint(r) || unicode.Is(invisible, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))))
	if cleaned := string(list[:min(len(list), maxName)]); Readable(cleaned) {
		return cleaned
	}
	return ""
}
