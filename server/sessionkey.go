package server

import (
	"context"
	"crypto/rand"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const sessionKeyName = "secrets/session"

// sessionKey returns the key that the sessions of a store are signed with; the first server of the store makes it.
func sessionKey(ctx context.Context, store *kv.Store) ([]byte, error) {
	made := make([]byte, 32)
	rand.Read(made) // never fails
	result, err := store.Commit(ctx, kv.Txn{
		If:   []kv.Cond{kv.Absent(sessionKeyName)},
		Then: []kv.Op{kv.Put(sessionKeyName, made)}, Else: []kv.Op{kv.Read(sessionKeyName)},
	})
	if err != nil || result.Held {
		return made, err
	}
	return result.Reads[0][0].Value, nil
}
