package autosave

import (
	"strconv"
	"strings"
)

// The seal ends the file of a generation. It says how long the content is and what its
// SHA-256 is, so that a whole file can be told from a torn one without an index. It has
// always the same length.
const (
	sealHead   = "\nholdfast "
	sealDigits = 16
	sealLength = len(sealHead) + sealDigits + 1 + 64 + 1
)

// Seal returns what [Files.Save] writes after a content of so many bytes and this SHA-256
// in lower-case hex.
func Seal(bytes int64, sha256 string) []byte {
	n := strconv.FormatInt(bytes, 10)
	n = strings.Repeat("0", max(0, sealDigits-len(n))) + n
	return []byte(sealHead + n + " " + sha256 + "\n")
}

// sealed returns the content of a file and the SHA-256 in its seal; ok is false where no seal
// for a content of this length ends the file. It does not look at the content.
func sealed(file []byte) (content []byte, sha256 string, ok bool) {
	n := len(file) - sealLength
	if n < 0 {
		return nil, "", false
	}
	sha256 = string(file[len(file)-65 : len(file)-1])
	if !isSHA256(sha256) || string(file[n:]) != string(Seal(int64(n), sha256)) {
		return nil, "", false
	}
	return file[:n:n], sha256, true
}
