// Package content keeps the contents of documents. Only the holder of a document's lock writes them.
//
// # Fencing
//
// A write carries the token of the lock under which it was made. The transaction that commits it requires that this
// exact lock still exists. So a holder that was suspended past its TTL cannot overwrite its successor, however late
// its request arrives.
//
// # The order of saves
//
// Two writes under one token can overtake each other: a client abandons the first one, the second is acknowledged,
// and then the first arrives. So a write may state its save order, and the transaction refuses an older save under
// the same token, see [Save].
//
// # Storage
//
// The bytes are a blob ([blobs.Blobs]). The blob is durable before the transaction that names it, so an acknowledged
// content exists. The store has the names:
//
//	content/<document>       the present generation, and the list of the kept ones
//	blobs/<blob>             the generation of a blob
//	made/<maker>/<document>  says which session or user saved the document first
//	deleted/<document>       the order of the saves of a document that was deleted or moved during the lock, until that lock ends, or for [OrphanAge]
//	garbage/<blob>           a blob that a transaction has dropped, for [Store.Tidy], which deletes it
//	swept/<blob>             a blob that [Store.Sweep] deletes, so that no later transaction names it
//	holds/<id>               a backup that runs, see [Store.Hold]
//	contents-home            the mark of the blobs that belong to this store, see [Store.Bind]; also contents-home-planned
//	chunks/<document>/       contents that a former version of this server kept here
//
// Every blob has its own name, even if another blob has the same bytes. So deleting one never harms a writer of the same
// bytes. A move writes the names again, see [Store.MoveUnder], and leaves the blobs as they are. A crash may leave a blob
// that no transaction has named; Sweep finds it.
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
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

const (
	prefix        = "content/"
	blobPrefix    = "blobs/"
	garbagePrefix = "garbage/"
	sweptPrefix   = "swept/"
	madePrefix    = "made/"
	deletedPrefix = "deleted/"

	// MaxKeep is the maximum number of kept generations of a document: one transaction can drop them all.
	MaxKeep = 50
)

var (
	// ErrNotFound means that the document has no content, or not that generation.
	ErrNotFound = errors.New("the document has no such content")
	// ErrPrecondition means that the present content is not the one that the writer expects.
	ErrPrecondition = errors.New("the document has another content than expected")
	// ErrTooMany means that the maker has created the maximum number of documents.
	ErrTooMany = errors.New("this session or user has made as many documents as one may")
)

// Info describes a generation of a document's content.
type Info struct {
	Generation string
	ETag       string    // quoted, as in HTTP; depends only on the bytes
	Token      int64     // of the lock under which it was written
	SavedAt    time.Time // in whole milliseconds
	Size       int
	Save       Save // as stated by the client
}

// Config configures a [Store].
type Config struct {
	KV    *kv.Store
	Locks *locks.Table
	Blobs blobs.Blobs
	// Apart means that the blobs may be on another disk than the store, or in a bucket.
	Apart bool
	// Keep is the number of kept generations per document, at most MaxKeep. Zero means one.
	Keep int
	// MaxDocuments limits the documents that one maker created with their first save, see [Writer]. 0 means no limit.
	// Concurrent saves may exceed it by a few.
	MaxDocuments int
	// Collected is called for each deleted blob that nothing names any more. It may be nil.
	Collected func()
	// Record returns operations that a write includes in its transaction. Nil adds none. Forget is the same for a
	// deletion.
	Record func(document string, saved Info) []kv.Op
	Forget func(document string) []kv.Op
}

// Store keeps contents.
type Store struct {
	Config
	needsSweep atomic.Bool                // see [Store.NeedsSweep]
	remembered atomic.Pointer[remembered] // nil if a transaction with it has failed, because the lease may be gone
}

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
	return &Store{Config: c}
}

// description is the value of content/<document> and of each generation.
type description struct {
	ETag  string `json:"etag"`
	Token int64  `json:"token"`
	Saved int64  `json:"saved"` // milliseconds since 1970
	Size  int    `json:"size"`
	Save  string `json:"save"` // names the generation
	Blob  string `json:"blob,omitempty"`
	By    string `json:"by,omitempty"` // the maker that first saved the document
	// Chunks is the number of pieces of a content that a former version of this server put into the store.
	Chunks int `json:"chunks,omitempty"`
	// The client's name of the save. A save without an order keeps the order of the previous save.
	Draft  string `json:"draft,omitempty"`
	Number int64  `json:"number,omitempty"`
	Order  int64  `json:"order,omitempty"`
	// Kept are the kept earlier generations, newest first, each with its blob. Only the present generation has this list.
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

// Absent returns the condition that a document has no content.
func Absent(document string) kv.Cond { return kv.Absent(prefix + document) }

// Exists returns the condition that a document has content.
func Exists(document string) kv.Cond { return kv.Exists(prefix + document) }

// Describe returns the description of a document's content as of a revision, or [ErrNotFound].
func (s *Store) Describe(ctx context.Context, document string, revision int64) (Info, error) {
	e, err := s.KV.GetAt(ctx, prefix+document, revision)
	if err != nil {
		return Info{}, err
	}
	d, err := decode(e)
	return d.info(), err
}

// Content is a readable generation. [Content.Open] reads its bytes.
type Content struct {
	Info
	d        description
	store    *Store
	document string
}

// Find returns a document's present content, or the given earlier generation, or [ErrNotFound].
func (s *Store) Find(ctx context.Context, document, generation string) (Content, error) {
	e, _, err := s.KV.Get(ctx, prefix+document)
	if err != nil {
		return Content{}, err
	}
	d, err := decode(e)
	if err != nil || generation == "" || generation == d.Save {
		return Content{d.info(), d, s, document}, err
	}
	for _, k := range d.Kept {
		if k.Save == generation {
			e, _, err := s.KV.Get(ctx, blobPrefix+k.Blob)
			if err != nil {
				return Content{}, err
			}
			d, err := decode(e)
			return Content{d.info(), d, s, document}, err
		}
	}
	return Content{}, ErrNotFound
}

// Open returns the bytes. It fails with [ErrNotFound] if the generation has been dropped meanwhile.
func (c Content) Open(ctx context.Context) (io.ReadSeekCloser, error) {
	if c.d.Blob == "" {
		return c.store.openChunks(ctx, c.document, c.d)
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
		return nil, fmt.Errorf("the content of %q is damaged: the blob %s is missing", c.document, c.d.Blob)
	}
	return nil, ErrNotFound
}

// Read returns a document's present content, or [ErrNotFound].
func (s *Store) Read(ctx context.Context, document string) ([]byte, Info, error) {
	for {
		c, err := s.Find(ctx, document, "")
		if err != nil {
			return nil, Info{}, err
		}
		r, err := c.Open(ctx)
		if errors.Is(err, ErrNotFound) {
			continue // a later generation has replaced it
		}
		if err != nil {
			return nil, Info{}, err
		}
		data, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); !errors.Is(err, blobs.ErrNotFound) {
			return data, c.Info, err
		}
	}
}

// History returns the kept generations of a document at one moment, newest first.
func (s *Store) History(ctx context.Context, document string) ([]Info, error) {
	for {
		e, _, err := s.KV.Get(ctx, prefix+document)
		if err != nil {
			return nil, err
		}
		d, err := decode(e)
		if err != nil {
			return nil, err
		}
		var reads []kv.Op
		for _, k := range d.Kept {
			reads = append(reads, kv.Read(blobPrefix+k.Blob))
		}
		result, err := s.KV.Commit(ctx, kv.Txn{If: []kv.Cond{kv.ChangedAt(prefix+document, e.Modified)}, Then: reads})
		if err != nil {
			return nil, err
		}
		if result.Held {
			return d.history(result.Reads)
		}
	}
}

// history returns the present generation and the kept ones, which have been read.
func (d description) history(kept [][]kv.Entry) ([]Info, error) {
	list := []Info{d.info()}
	for _, read := range kept {
		if len(read) == 0 {
			continue // the store is damaged
		}
		earlier, err := decode(read[0])
		if err != nil {
			return nil, err
		}
		list = append(list, earlier.info())
	}
	return list, nil
}

// Document is a document with content.
type Document struct {
	ID string
	Info
}

// Documents returns at most limit documents whose names begin with begin and follow after, in order of names.
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
