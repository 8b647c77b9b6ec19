// Package content keeps the bytes of documents, written only by the holder of the document's lock.
//
// # Fencing
//
// A write bears the token of the lock under which it was made. The transaction that commits it has the condition that
// this very lock is still there, so a holder that was suspended past its time cannot overwrite its successor, whatever it
// believes and however late its request arrives.
//
// # The order of saves
//
// Two writes under one token can overtake each other on their way: a client gives up the first, the second is
// acknowledged, and the first arrives. So a write may say which save it is, and the transaction refuses an older one
// under the same token, see [Save].
//
// # In the store
//
// content/<room> describes the present content; its bytes are in pieces under chunks/<room>/<save>/. A store of etcd's
// kind takes requests of at most 1.5 MiB unless told otherwise, and large ones delay all others; so the pieces are
// written one by one, and the commit is the small transaction that brings the last of them and the description. Until
// then nobody sees them; pieces that no description names are cleared away after a while.
package content

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

const (
	prefix      = "content/"
	chunkPrefix = "chunks/"

	// chunkSize is how many bytes one piece has at most.
	chunkSize = 1 << 20
	// orphanAge is how old pieces without a description must be to be cleared away: older than any request can last.
	orphanAge = 10 * time.Minute
)

// ErrNotFound means that the document has no content yet.
var ErrNotFound = errors.New("the document has no content")

// Info describes a document's content.
type Info struct {
	ETag    string    // quoted, as HTTP has it: of the bytes alone
	Token   int64     // of the lock under which it was written
	SavedAt time.Time // in whole milliseconds
	Size    int
	Save    Save // what the client said of it
}

// Store keeps contents.
type Store struct {
	kv     *kv.Store
	table  *locks.Table
	record func(room string, saved Info) []kv.Op
}

// New returns a store whose writes also carry out the operations that record returns for them; nil records nothing.
func New(store *kv.Store, table *locks.Table, record func(room string, saved Info) []kv.Op) *Store {
	if record == nil {
		record = func(string, Info) []kv.Op { return nil }
	}
	return &Store{store, table, record}
}

// description is the value of content/<room>.
type description struct {
	ETag   string `json:"etag"`
	Token  int64  `json:"token"`
	Saved  int64  `json:"saved"` // milliseconds since 1970
	Size   int    `json:"size"`
	Save   string `json:"save"`
	Chunks int    `json:"chunks"`
	// What the client said of the save. A save that names no order keeps the order of the one before.
	Draft  string `json:"draft,omitempty"`
	Number int64  `json:"number,omitempty"`
	Order  int64  `json:"order,omitempty"`
}

func (d description) info() Info {
	return Info{d.ETag, d.Token, time.UnixMilli(d.Saved), d.Size, Save{d.Draft, d.Number, d.Order}}
}

func (d description) encode() []byte {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings and numbers
	}
	return text
}

func chunkKey(room, save string, i int) string {
	return fmt.Sprintf("%s%s/%s/%03d", chunkPrefix, room, save, i)
}

// Read returns a document's content, or [ErrNotFound].
func (s *Store) Read(ctx context.Context, room string) ([]byte, Info, error) {
	for {
		e, revision, err := s.kv.Get(ctx, prefix+room)
		if err != nil {
			return nil, Info{}, err
		}
		d, err := decode(e)
		if err != nil {
			return nil, Info{}, err
		}
		// As of the description's revision: a save that comes meanwhile deletes these pieces.
		chunks, err := s.kv.RangeAt(ctx, chunkPrefix+room+"/"+d.Save+"/", revision)
		if errors.Is(err, kv.ErrCompacted) {
			continue
		}
		if err != nil {
			return nil, Info{}, err
		}
		data := make([]byte, 0, d.Size)
		for _, c := range chunks {
			data = append(data, c.Value...)
		}
		if len(data) != d.Size {
			return nil, Info{}, fmt.Errorf("the content of %q is damaged: %d of %d bytes", room, len(data), d.Size)
		}
		return data, d.info(), nil
	}
}

// Describe returns what is known of a document's content as it was at a revision, or [ErrNotFound].
func (s *Store) Describe(ctx context.Context, room string, revision int64) (Info, error) {
	e, err := s.kv.GetAt(ctx, prefix+room, revision)
	if err != nil {
		return Info{}, err
	}
	d, err := decode(e)
	return d.info(), err
}

// Write replaces a document's content under the lock with the token given. It fails with [locks.ErrStaleToken] when that
// lock is gone or another has come, with [locks.ErrNotHolder] when it never was the holder's, and with [ErrStaleSave] when
// a later save is stored. A save that is stored already changes nothing: Write returns what is known of it.
func (s *Store) Write(ctx context.Context, room, holder string, token int64, save Save, data []byte) (Info, error) {
	for {
		fence, err := s.table.Fence(ctx, locks.Document(room), holder, token)
		if err != nil {
			return Info{}, err
		}
		info, done, err := s.write(ctx, room, token, fence, save, data)
		if done || err != nil {
			return info, err
		}
	}
}

// write tries once; it is done unless something but the lock has changed meanwhile.
func (s *Store) write(ctx context.Context, room string, token int64, fence kv.Cond, save Save, data []byte) (Info, bool, error) {
	old, _, err := s.kv.Get(ctx, prefix+room)
	if err != nil {
		return Info{}, false, err
	}
	now := time.Now()
	sum := sha256.Sum256(data)
	d := description{
		ETag: `"` + hex.EncodeToString(sum[:16]) + `"`, Token: token, Saved: now.UnixMilli(), Size: len(data),
		Save: newSave(now), Draft: save.Draft, Number: save.Number, Order: save.Order,
	}
	conditions := []kv.Cond{fence, kv.ChangedAt(prefix+room, old.Modified)}
	if before, err := decode(old); err == nil {
		if stored, err := d.follow(before); stored || err != nil {
			if err == nil && d.Order > before.Order {
				before.Order = d.Order // what was sent in between is refused from now on
				result, err := s.kv.Commit(ctx, kv.Txn{If: conditions, Then: []kv.Op{kv.Put(prefix+room, before.encode())}})
				return before.info(), result.Held, err
			}
			return before.info(), stored, err
		}
	}
	var last []kv.Op
	for chunk := range slices.Chunk(data, chunkSize) {
		key := chunkKey(room, d.Save, d.Chunks)
		d.Chunks++
		put := kv.Put(key, chunk)
		if d.Chunks*chunkSize >= len(data) {
			last = append(last, put)
			break
		}
		if _, err := s.kv.Commit(ctx, kv.Txn{Then: []kv.Op{put}}); err != nil {
			return Info{}, false, err
		}
		conditions = append(conditions, kv.Exists(key))
	}
	then := append(last, kv.Put(prefix+room, d.encode()))
	if before, err := decode(old); err == nil && before.Chunks > 0 {
		then = append(then, kv.DeleteUnder(chunkPrefix+room+"/"+before.Save+"/"))
	}
	then = append(then, s.record(room, d.info())...)
	result, err := s.kv.Commit(ctx, kv.Txn{If: conditions, Then: then})
	return d.info(), result.Held, err
}

// newSave names a save so that its age can be told.
func newSave(now time.Time) string {
	return strconv.FormatInt(now.UnixMilli(), 36) + "-" + rand.Text()[:10]
}

func savedAt(save string) (time.Time, bool) {
	ms, _, ok := strings.Cut(save, "-")
	n, err := strconv.ParseInt(ms, 36, 64)
	return time.UnixMilli(n), ok && err == nil
}

func decode(e kv.Entry) (description, error) {
	if !e.Found() {
		return description{}, ErrNotFound
	}
	var d description
	if err := json.Unmarshal(e.Value, &d); err != nil {
		return d, fmt.Errorf("the description of a content is damaged: %w", err)
	}
	return d, nil
}

// Tidy clears away the pieces of saves that were never committed.
func (s *Store) Tidy(ctx context.Context, now time.Time) error {
	keys, err := s.kv.Keys(ctx, chunkPrefix)
	if err != nil {
		return err
	}
	looked := map[string]bool{}
	for _, key := range keys {
		parts := strings.Split(strings.TrimPrefix(key, chunkPrefix), "/")
		if len(parts) != 3 || looked[parts[0]+"/"+parts[1]] {
			continue
		}
		room, save := parts[0], parts[1]
		looked[room+"/"+save] = true
		if saved, ok := savedAt(save); ok && now.Sub(saved) < orphanAge {
			continue
		}
		if err := s.clear(ctx, room, save); err != nil {
			return err
		}
	}
	return nil
}

// clear removes the pieces of a save unless they are the content.
func (s *Store) clear(ctx context.Context, room, save string) error {
	e, _, err := s.kv.Get(ctx, prefix+room)
	if err != nil {
		return err
	}
	if d, err := decode(e); err == nil && d.Save == save {
		return nil
	}
	_, err = s.kv.Commit(ctx, kv.Txn{
		If:   []kv.Cond{kv.ChangedAt(prefix+room, e.Modified)},
		Then: []kv.Op{kv.DeleteUnder(chunkPrefix + room + "/" + save + "/")},
	})
	return err
}
