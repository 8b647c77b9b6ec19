package users

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/follow"
)

// Keys are the users of API keys, by the SHA-256 of each key.
//
// A key is random and long, so its hash need not be slow: a reader of the file cannot find the key.
type Keys map[[sha256.Size]byte]User

// ParseKeys reads a file of API keys. Each line has a name, the hash of the key and, separated by commas, the groups:
//
//	ci  sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  robots,editors
//
// A # begins a comment. A blank inside a name is written as %20.
func ParseKeys(texts ...[]byte) (Keys, error) {
	keys := Keys{}
	if err := follow.Lines(texts, keys.add); err != nil {
		return nil, err
	}
	return keys, nil
}

func (k Keys) add(fields []string) error {
	if len(fields) < 2 || len(fields) > 3 {
		return errors.New("a line must have a name, sha256:HASH and optional groups separated by commas")
	}
	name, err := url.PathUnescape(fields[0])
	if err != nil || name == "" {
		return fmt.Errorf("the name %q is not escaped correctly", fields[0])
	}
	text, hashed := strings.CutPrefix(fields[1], "sha256:")
	sum, err := hex.DecodeString(text)
	if err != nil || !hashed || len(sum) != sha256.Size {
		return fmt.Errorf("the hash of %s is not sha256: and 64 hexadecimal digits", name)
	}
	u := User{Name: name}
	if len(fields) == 3 {
		u.Groups = strings.Split(fields[2], ",")
	}
	if _, twice := k[[sha256.Size]byte(sum)]; twice {
		return fmt.Errorf("the key of %s appears twice", name)
	}
	k[[sha256.Size]byte(sum)] = u
	return nil
}

// Of returns the user of a key.
func (k Keys) Of(key string) (User, bool) {
	u, ok := k[sha256.Sum256([]byte(key))]
	return u, ok
}
