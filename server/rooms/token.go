package rooms

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
)

var tokenForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// newToken returns a secret of 128 random bits, encoded in characters that a key may contain.
func newToken() string {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	return hex.EncodeToString(secret[:])
}

func validToken(token string) bool { return tokenForm.MatchString(token) }
