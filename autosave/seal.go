package autosave

import (
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// The seal ends the file of a generation. It begins with a note, which the index contains too. A part of fixed length
// follows: the lengths of the note and of the content, and the SHA-256 of the content. The seal distinguishes a whole
// file from a torn one without an index, and an index can be rebuilt from the files.
const (
	sealHead    = "\nholdfast "
	noteDigits  = 6
	bytesDigits = 16
	sealLength  = len(sealHead) + noteDigits + 1 + bytesDigits + 1 + 64 + 1
)

// Seal returns the text that [Files.Save] writes after a content of that length and SHA-256, in lower-case hex.
func Seal(bytes int64, sha256, note string) []byte {
	return []byte(note + sealHead + padded(int64(len(note)), noteDigits) + " " + padded(bytes, bytesDigits) + " " + sha256 + "\n")
}

func padded(n int64, digits int) string {
	s := strconv.FormatInt(n, 10)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// sealed returns the content of a file, its SHA-256 and its note. ok is false if no seal for a content of this length
// ends the file. The caller compares the SHA-256 with that of the content.
func sealed(file []byte) (content []byte, sha256, note string, ok bool) {
	n := len(file) - sealLength
	if n < 0 {
		return nil, "", "", false
	}
	digits := strings.TrimLeft(string(file[n+len(sealHead):n+len(sealHead)+noteDigits]), "0")
	noted, _ := strconv.ParseUint(digits, 10, 32) // if it is no number, the comparison fails
	end := n - int(noted)
	if end < 0 {
		return nil, "", "", false
	}
	sha256, note = string(file[len(file)-65:len(file)-1]), string(file[end:n])
	if string(file[end:]) != string(Seal(int64(end), sha256, note)) {
		return nil, "", "", false
	}
	return file[:end:end], sha256, note, true
}

// The pieces of a note.
const (
	noteAt    = `{"savedAt":`
	noteAside = `,"aside":true`
	noteCheck = `,"crc32":"`
	noteTail  = `"}`
)

// encodeNote writes the fields of a generation except its content and its id, and whether it is committed aside.
func encodeNote(g Generation, aside bool) string {
	b := strconv.AppendInt([]byte(noteAt), g.SavedAt.UnixMilli(), 10)
	if aside {
		b = append(b, noteAside...)
	}
	b = appendSnapshot(b, g)
	return string(b) + noteCheck + hex32(crc32.ChecksumIEEE(b)) + noteTail
}

// decodeNote adds the fields of a note to a generation. It ignores a note in any other spelling than that of
// encodeNote.
func decodeNote(g Generation, note string) (_ Generation, aside bool) {
	c := cursor{rest: note}
	noted := g
	c.literal(noteAt)
	noted.SavedAt = time.UnixMilli(c.number())
	if aside = strings.HasPrefix(c.rest, noteAside); aside {
		c.literal(noteAside)
	}
	c.snapshot(&noted)
	if !c.ok() || encodeNote(noted, aside) != note {
		return g, false
	}
	return noted, aside
}
