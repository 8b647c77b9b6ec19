// Package content keeps the contents of documents, written only by the holder of the document's lock.
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
// # Where things are
//
// The bytes are a blob ([blobs.Blobs]). It is durable before the transaction that names it, so a content that was
// acknowledged is there. The store has only names: content/<document> describes the present generation and lists those that are kept;
// blobs/<blob> describes the generation of each blob, and made/<holder>/<document> says whose save made the document. A blob has a name of its own even where its bytes are those of
// another, so deleting one never harms a writer of the same bytes.
//
// A transaction that gives up a generation names its blob under garbage/, and [Store.Tidy] deletes what is named there. A
// blob that a crash left without a transaction is found by [Store.Sweep].
package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

const (
	prefix        = "content/"
	blobPrefix    = "blobs/"
	garbagePrefix = "garbage/"
	madePrefix    = "made/"

	// MaxKeep is how many generations one document may keep: each transaction has room for giving them all up.
	MaxKeep = 50
)

var (
	// ErrNotFound means that the document has no content, or not that generation.
	ErrNotFound = errors.New("the document has no such content")
	// ErrPrecondition means that the present content is not the one that the writer expects.
	ErrPrecondition = errors.New("the document has another content than expected")
	// ErrTooMany means that the holder has made as many documents as one may.
	ErrTooMany = errors.New("this session has made as many documents as one may")
)

// Info describes a generation of a document's content.
type Info struct {
	Generation string
	ETag       string    // quoted, as in HTTP: of the bytes alone
	Token      int64     // of the lock under which it was written
	SavedAt    time.Time // in whole milliseconds
	Size       int
	Save       Save // what the client said of it
}

// Config is what a store of contents stands on.
type Config struct {
	KV    *kv.Store
	Locks *locks.Table
	Blobs blobs.Blobs
	// Keep is how many generations of each document are kept, at most MaxKeep; zero is one.
	Keep int
	// MaxDocuments bounds how many documents there are that one holder was the first to save; 0 is no bound. Saves at the same time may
	// exceed it by a few.
	MaxDocuments int
	// Collected is called for each blob that is deleted because nothing names it any more; nil is not called.
	Collected func()
	// Record returns operations that a write carries out too; nil is none. Forget does so for a deletion.
	Record func(room string, saved Info) []kv.Op
	Forget func(room string) []kv.Op
}

// Store keeps contents.
type Store struct{ Config }

// New returns a store.
func New(c Config) *Store {
	if c.Record == nil {
		c.Record = func(string, Info) []kv.Op { return nil }
	}
	if c.Forget == nil {
		c.Forget = func(string) []kv.Op { return nil }
	}
	if c.Collected == nil {
		c.Collected = func() {}
	}
	c.Keep = min(max(c.Keep, 1), MaxKeep)
	return &Store{c}
}

// description is the value of content/<room>, and of each generation.
type description struct {
	ETag  string `json:"etag"`
	Token int64  `json:"token"`
	Saved int64  `json:"saved"` // milliseconds since 1970
	Size  int    `json:"size"`
	Save  string `json:"save"` // names the generation
	Blob  string `json:"blob,omitempty"`
	By    string `json:"by,omitempty"` // the holder that saved the document first
	// Chunks is how many pieces a content has that a former version of this server put into the store.
	Chunks int `json:"chunks,omitempty"`
	// The client's name of the save. A save that names no order keeps the order of the one before.
	Draft  string `json:"draft,omitempty"`
	Number int64  `json:"number,omitempty"`
	Order  int64  `json:"order,omitempty"`
	// Kept are the earlier generations that are kept, the latest first, each with its blob; of the present one only.
	Kept []kept `json:"kept,omitempty"`
}

type kept struct {
	Save string `json:"s"`
	Blob string `json:"b"`
}

func (d description) info() Info {
	return Info{d.Save, d.ETag, d.Token, time.UnixMilli(d.Saved), d.Size, Save{d.Draft, d.Number, d.Order}}
}

func (d description) encode() []byte {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings and numbers
	}
	return text
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

func etag(data []byte) (tag, digest string) {
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	return `"` + digest[:32] + `"`, digest
}

// None returns the condition that a document has no content.
func None(room string) kv.Cond { return kv.Absent(prefix + room) }

// Describe returns what is known of a document's content as it was at a revision, or [ErrNotFound].
func (s *Store) Describe(ctx context.Context, room string, revision int64) (Info, error) {
	e, err := s.KV.GetAt(ctx, prefix+room, revision)
	if err != nil {
		return Info{}, err
	}
	d, err := decode(e)
	return d.info(), err
}

// Content is a generation that can be read. Its bytes are read only when [Content.Open] is called.
type Content struct {
	Info
	d     description
	store *Store
	room  string
}

// Find returns a document's content, or with a generation an earlier one, or [ErrNotFound].
func (s *Store) Find(ctx context.Context, room, generation string) (Content, error) {
	e, _, err := s.KV.Get(ctx, prefix+room)
	if err != nil {
		return Content{}, err
	}
	d, err := decode(e)
	if err != nil || generation == "" || generation == d.Save {
		return Content{d.info(), d, s, room}, err
	}
	for _, k := range d.Kept {
		if k.Save == generation {
			e, _, err := s.KV.Get(ctx, blobPrefix+k.Blob)
			if err != nil {
				return Content{}, err
			}
			d, err := decode(e)
			return Content{d.info(), d, s, room}, err
		}
	}
	return Content{}, ErrNotFound
}

// Open returns the bytes. It fails with [ErrNotFound] when the generation has been given up since.
func (c Content) Open(ctx context.Context) (io.ReadSeekCloser, error) {
	if c.d.Blob == "" {
		return c.store.openChunks(ctx, c.room, c.d)
	}
	r, err := c.store.Blobs.Open(ctx, c.d.Blob)
	if !errors.Is(err, blobs.ErrNotFound) {
		return r, err
	}
	e, _, err := c.store.KV.Get(ctx, blobPrefix+c.d.Blob)
	if err != nil {
		return nil, err
	}
	if e.Found() {
		return nil, fmt.Errorf("the content of %q is damaged: the blob %s is missing", c.room, c.d.Blob)
	}
	return nil, ErrNotFound
}

// Read returns a document's present content, or [ErrNotFound].
func (s *Store) Read(ctx context.Context, room string) ([]byte, Info, error) {
	for {
		c, err := s.Find(ctx, room, "")
		if err != nil {
			return nil, Info{}, err
		}
		r, err := c.Open(ctx)
		if errors.Is(err, ErrNotFound) {
			continue // a later one has come
		}
		if err != nil {
			return nil, Info{}, err
		}
		data, err := io.ReadAll(r)
		return data, c.Info, errors.Join(err, r.Close())
	}
}

// History returns the generations of a document that are kept, the latest first.
func (s *Store) History(ctx context.Context, room string) ([]Info, error) {
	e, _, err := s.KV.Get(ctx, prefix+room)
	if err != nil {
		return nil, err
	}
	d, err := decode(e)
	if err != nil {
		return nil, err
	}
	list := []Info{d.info()}
	var reads []kv.Op
	for _, k := range d.Kept {
		reads = append(reads, kv.Read(blobPrefix+k.Blob))
	}
	result, err := s.KV.Commit(ctx, kv.Txn{Then: reads})
	if err != nil {
		return nil, err
	}
	for _, read := range result.Reads {
		if len(read) == 0 {
			continue // given up since
		}
		d, err := decode(read[0])
		if err != nil {
			return nil, err
		}
		list = append(list, d.info())
	}
	return list, nil
}

// Document is one that has a content.
type Document struct {
	Room string
	Info
}

// Documents returns the documents whose names begin with a prefix and come after a name, in the order of their names, at
// most limit.
func (s *Store) Documents(ctx context.Context, begin, after string, limit int64) ([]Document, error) {
	entries, err := s.KV.Page(ctx, prefix+begin, prefix+after, limit)
	if err != nil {
		return nil, err
	}
	list := make([]Document, 0, len(entries))
	for _, e := range entries {
		d, err := decode(e)
		if err != nil {
			return nil, err
		}
		list = append(list, Document{strings.TrimPrefix(e.Key, prefix), d.info()})
	}
	return list, nil
}
