package autosave

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Store keeps the generations of one document where they outlive the page.
//
// Implementations must satisfy the suite in autosave/autosavetest:
//   - A commit is seen whole or not at all. Killed at any step, or any step failing,
//     what was committed last reads back whole.
//   - Once Fence or Commit has succeeded under a token, no commit under a lower one
//     succeeds: it fails with an error that matches ErrStaleToken, decided inside the
//     commit. A commit that has succeeded is seen by every Fence and List after it.
//   - A commit that finds no room fails with ErrQuota, one whose storage was emptied
//     meanwhile with ErrEvicted (the next one begins anew), any other failure matches
//     ErrWriteFailed. None of them costs a generation.
//   - Read verifies the checksum. It fails with ErrCorrupted, which names the
//     generation, and the others stay readable; with ErrNotFound where there is none.
//   - Its methods may be called from any goroutine, by any number of pages. Tokens are
//     positive and no two editors have the same.
type Store interface {
	// Fence shuts out every editor with a lower token. What List and Read tell
	// afterwards stays true until the next commit under this token or a higher one.
	Fence(ctx context.Context, token int64) error
	// Commit makes the content the current generation, then removes what is beyond the
	// limits. Failing to remove is no error.
	Commit(ctx context.Context, c Commit) (Generation, error)
	// Pin names a generation, so that no commit removes it; an empty name lets it go. The
	// id may be [Current]. Its errors are those of Commit and ErrNotFound, and it is seen whole or
	// not at all, like a commit.
	Pin(ctx context.Context, token int64, id, name string) (Generation, error)
	// List returns all generations, the current one first.
	List(ctx context.Context) ([]Generation, error)
	// Read returns the content of a generation. The id may be [Current].
	Read(ctx context.Context, id string) ([]byte, error)
}

// LaterToken is the cause of an error that matches ErrStaleToken, where the store knows
// the token that is later. A lock whose records were lost or set back learns it so.
type LaterToken struct{ Token int64 }

// Error names the token.
func (e *LaterToken) Error() string { return "its token is " + strconv.FormatInt(e.Token, 10) }

// Commit is what a [Store] is given to commit.
type Commit struct {
	Content Content
	// Take, where set, returns the content instead. It is called while the store prepares,
	// once for each attempt to write; its error ends the commit.
	Take    func(ctx context.Context) (Content, error)
	Token   int64
	SavedAt time.Time
	Limits  Limits
	// Draft, Number and OwnerName are stored with the generation. A content that is
	// [Numbered] replaces the first two.
	Draft     string
	Number    int64
	OwnerName string
	// Aside makes the content a generation and leaves the current one current. If nothing
	// is saved yet, the content becomes the current generation.
	Aside bool
	// Progress, where set, is told of the phases writing-current, updating-index and gc
	// as they begin.
	Progress func(Phase)
	// Sized, where set, is told how many bytes the content has, before the index is
	// updated. A Store need not tell.
	Sized func(bytes int64)
	// Committed, where set, is told of the generation as soon as it is durable, before
	// anything is removed. A Store need not tell; that Commit returns says the same.
	Committed func(Generation)
}

// Content is what is saved. What is not in Go need not come there on its way to the storage.
type Content interface {
	// Bytes returns what is saved. It must not be changed. Once a Store was given the
	// content, it may fail.
	Bytes() ([]byte, error)
}

// Numbered is a [Content] that knows its place among the snapshots of its page.
type Numbered struct {
	Content
	Draft  string // id of the draft that the snapshot belongs to
	Number int64  // counts up within the draft
}

// Bytes is a [Content] that is there. It is not changed by anybody.
type Bytes []byte

// Bytes implements [Content].
func (b Bytes) Bytes() ([]byte, error) { return b, nil }

func (c Commit) sized(bytes int64) {
	if c.Sized != nil {
		c.Sized(bytes)
	}
}

func (c Commit) committed(g Generation) {
	if c.Committed != nil {
		c.Committed(g)
	}
}

// Taken returns the commit with its content in place of Take. If the content is
// [Numbered], its draft and number are those of the commit.
func (c Commit) Taken(ctx context.Context) (Commit, error) {
	var err error
	if c.Take != nil {
		c.Content, err = c.Take(ctx)
		c.Take = nil
	}
	if n, ok := c.Content.(Numbered); ok {
		c.Content, c.Draft, c.Number = n.Content, n.Draft, n.Number
	}
	if c.Content == nil {
		c.Content = Bytes(nil)
	}
	return c, err
}

func (c Commit) progress(p Phase) {
	if c.Progress != nil {
		c.Progress(p)
	}
}

// Digest returns the SHA-256 of the content in lower-case hex. It is a port because
// browsers have a fast one, and crypto/sha256 would weigh on the Wasm.
type Digest func(ctx context.Context, content []byte) (string, error)

// Files is the little that [Layout] wants of a file system: flat folders, and files
// that are written once and never changed.
//
// Implementations must satisfy:
//   - Write returns when the file would survive a crash. It is never called for a name
//     that was written before. A file whose Write failed or was killed may be absent,
//     torn or whole.
//   - What one page has written, every page lists and reads.
//   - A full storage shows as an error that matches ErrQuota.
type Files interface {
	// List returns the names in a folder, in any order; none where it does not exist.
	List(ctx context.Context, folder string) ([]string, error)
	// Read fails with an error that matches fs.ErrNotExist where there is no such file,
	// and where it cannot be read because it is still being written.
	Read(ctx context.Context, folder, name string) ([]byte, error)
	Write(ctx context.Context, folder, name string, content []byte) error
	// Remove removes a file; that it does not exist is no error.
	Remove(ctx context.Context, folder, name string) error
	// Save writes two files, the first with its [Seal], the second once the first is durable, and returns the names
	// in FolderIndex as List would after that. There may be empty files from the
	// beginning. It is one call so that it can be fast: everything is at a distance from
	// here, and the files can be opened while the content is taken. Where it fails with an
	// error that matches ErrNotBegun, the index is empty or absent, and will stay so.
	Save(ctx context.Context, s Saving) (names []string, err error)
	// Expect says which files the next Save is going to write if it comes soon, so that they can
	// be made, empty, and opened before. It does not wait for them.
	Expect(name, index string)
}

var (
	// ErrNotBegun is what [Files.Save] fails with where it has not begun to write the index.
	ErrNotBegun = errors.New("the index was not begun")
	// ErrNotOpened is what it fails with, beside ErrNotBegun, where the storage has not opened
	// a file for seconds. It may never do so, and open another at once.
	ErrNotOpened = errors.New("the storage has not opened a file")
)

// Saving is what [Files.Save] writes.
type Saving struct {
	Name  string                                     // in FolderHistory, with what
	Take  func(ctx context.Context) (Content, error) // returns, once
	Index string                                     // in FolderIndex, with what Encode returns
	// Note returns what the [Seal] notes. It is called after Take.
	Note func() string
	// Encode is called once it is known what the content is, durable or not, with how many
	// bytes it has, their SHA-256 in lower-case hex and the names in FolderIndex as they
	// were at a moment since the call of Save. Where Take or it fails, the index is not
	// begun and Save returns the error.
	Encode func(bytes int64, sha256 string, names []string) ([]byte, error)
}
