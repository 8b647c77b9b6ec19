package autosave

import (
	"context"
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
	// List returns all generations, the current one first.
	List(ctx context.Context) ([]Generation, error)
	// Read returns the content of a generation. The id may be [Current].
	Read(ctx context.Context, id string) ([]byte, error)
}

// Commit is what a [Store] is given to commit.
type Commit struct {
	Content []byte // not changed by anybody until Commit has returned
	Token   int64
	SavedAt time.Time
	Limits  Limits
	// Progress, where set, is told of the phases writing-current, updating-index and gc
	// as they begin.
	Progress func(Phase)
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
}
