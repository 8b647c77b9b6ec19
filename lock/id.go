package lock

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID returns a random UUID, version 4 (RFC 9562, section 5.4).
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the process ends where there is no entropy
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
