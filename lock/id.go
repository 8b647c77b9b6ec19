package lock

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// NewID returns a random UUID, version 4 (RFC 9562, section 5.4). It is unique, not a
// secret: whoever shares a record or a channel sees it. The generator is the runtime's
// ChaCha8, seeded by the system; crypto/rand would bring 180 KB into the Wasm.
func NewID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], rand.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
