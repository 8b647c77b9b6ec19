package autosave

import (
	"context"
	"errors"
	"time"
)

// Cause is the reason why a [Draft] exists.
type Cause string

// The causes.
const (
	CauseClosed     Cause = "closed"      // the page was closed before it could save
	CauseCrashed    Cause = "crashed"     // the page died
	CauseLockLost   Cause = "lock-lost"   // the page lost the lock, or never had it
	CauseOffline    Cause = "offline"     // the server did not answer
	CauseSaveFailed Cause = "save-failed" // the store refused to save
)

// Draft is text of a page that no commit contains.
//
// ID names a lineage: one text of one page and everything typed into it. A page takes a new ID when it starts and each
// time its text is replaced. Number counts the snapshots of a page: of two snapshots with one ID, the higher number is
// the later text.
type Draft struct {
	ID                 string
	Number             int64
	Path               []string // of the document
	OwnerID, OwnerName string   // the page that typed it
	At                 time.Time
	Bytes              int64
	Base               string // ID of the generation on which it was typed; "" for an empty document
	Cause              Cause
}

// ErrIncomplete says that a page is gone and its text is not a draft yet. The text becomes a draft when it is stored:
// an editor asks again before it edits.
var ErrIncomplete = errors.New("the text of a page that was closed is still being stored")

// Drafts stores the drafts of one document in a place that outlives the page. Each page has its own Drafts over the
// same storage.
//
// Implementations must satisfy the suite in autosave/autosavetest:
//   - A draft is written by one page. It is listed when that page has sealed it or is gone.
//   - A page that is killed at any step leaves a whole snapshot, the older or the newer one.
//   - A page that seals again under the same ID replaces its draft. A lower number never
//     replaces a higher one.
//   - Methods may be called from any goroutine.
type Drafts interface {
	// List returns the drafts of pages that are gone or have sealed their drafts, the newest first. The error matches
	// ErrIncomplete while the text of such a page is still being stored.
	List(ctx context.Context) ([]Draft, error)
	// Read returns the text of a listed draft. The error matches ErrNotFound if there is no such draft.
	Read(ctx context.Context, id string) ([]byte, error)
	// Remove removes a draft up to the number. A draft with a higher number stays. Removing a draft that does not exist
	// is no error.
	Remove(ctx context.Context, id string, number int64) error
	// Discard is Remove for a text that a user does not want, or that was merged. The page that shows it may not know of that: for an hour, it
	// makes no draft of the same text again.
	Discard(ctx context.Context, id string, number int64) error
	// Seal stores the unsaved text of this page, and lets other pages see it. It returns nil if everything is saved or
	// discarded. The page may continue the same lineage; text typed after the call belongs to the next Seal.
	Seal(ctx context.Context, cause Cause) (*Draft, error)
}

// Conflict contains three sides: a draft and the saved content have both changed since Base.
type Conflict struct {
	Draft  Draft
	Base   []byte // nil if it is no longer kept; empty for an empty document
	Mine   []byte // the draft
	Theirs []byte // the saved content
}
