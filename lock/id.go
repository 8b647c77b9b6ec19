package lock

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// NewID returns a random UUID, version 4 (RFC 9562, section 5.4). It is unique but not secret: other clients see it in
// records and messages. The generator is the runtime's ChaCha8, seeded by the system; crypto/rand would add 180 KB to
// the Wasm.
func NewID() string {
	const version, variant = 0x4 << 12, 0x2 << 62
	s := hex(rand.Uint64()&^(0xf<<12)|version) + hex(rand.Uint64()&^(0x3<<62)|variant)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func hex(n uint64) string {
	digits := strconv.FormatUint(n, 16)
	return strings.Repeat("0", 16-len(digits)) + digits
}
