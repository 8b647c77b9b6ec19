package autosave

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Store keeps the generations of one document in a place that outlives the page.
//
// Implementations must satisfy the suite in autosave/autosavetest:
//   - A commit is seen whole or not at all. After a kill or a failure at any step, the last committed content reads
//     back whole.
//   - Once Fence or Commit has succeeded under a token, no commit under a lower one succeeds. The commit itself decides
//     that, and its error matches ErrStaleToken. Every later Fence and List sees a commit that has succeeded.
//   - A commit fails with ErrQuota if there is no space. It fails with ErrEvicted if the storage was emptied meanwhile;
//     the next commit begins again. Other errors match ErrWriteFailed. No failure costs a generation.
//   - Read verifies the checksum. If it is wrong, Read fails with ErrCorrupted, which names the generation, and the
//     others stay readable. Read fails with ErrNotFound if there is no such generation.
//   - Its methods may be called from any goroutine, by any number of pages. Tokens are positive, and no two editors
//     have the same token.
type Store interface {
	// Fence excludes every editor with a lower token. The results of List and Read afterwards stay valid until the next
	// commit under this token or a higher one.
	Fence(ctx context.Context, token int64) error
	// Commit makes the content the current generation, then removes the generations beyond the limits. A failure to
	// remove is no error.
	Commit(ctx context.Context, c Commit) (Generation, error)
	// Pin names a generation, so that no commit removes it; an empty name removes the pin. The id may be [Current]. Its
	// errors are those of Commit and ErrNotFound. Like a commit, a pin is seen whole or not at all.
	Pin(ctx context.Context, token int64, id, name string) (Generation, error)
	// List returns all generations, the current one first. A generation whose commit may still be refused has no Draft.
	List(ctx context.Context) ([]Generation, error)
	// Read returns the content of a generation. The id may be [Current].
	Read(ctx context.Context, id string) ([]byte, error)
}

// LaterToken is the cause of an error that matches ErrStaleToken, if the store knows the later token. A lock whose
// records were lost or set back learns the token from it.
type LaterToken struct{ Token int64 }

// Error names the token.
func (e *LaterToken) Error() string { return "its token is " + strconv.FormatInt(e.Token, 10) }

// Commit is the argument of [Store].Commit.
type Commit struct {
	Content Content
	// Take, if set, returns the content instead. It is called while the store prepares, once for each attempt to write;
	// its error ends the commit.
	Take    func(ctx context.Context) (Content, error)
	Token   int64
	SavedAt time.Time
	Limits  Limits
	// Draft, Number and OwnerName are stored with the generation. A content that is [Numbered] replaces the first two.
	Draft     string
	Number    int64
	OwnerName string
	// Aside makes the content a generation and leaves the current one current. If nothing is saved yet, the content
	// becomes the current generation. The commit fails with ErrQuota if the Limits would remove it at once.
	Aside bool
	// Progress, if set, is called with the phases writing-current, updating-index and gc as they begin.
	Progress func(Phase)
	// Sized, if set, is called with the size of the content in bytes, before the index is updated. A Store need not
	// call it.
	Sized func(bytes int64)
	// Committed, if set, is called with the generation as soon as it is durable, before anything is removed. A Store
	// need not call it, because the return of Commit means the same.
	Committed func(Generation)
}

// Content is the content to save. It need not pass through Go on its way to the storage.
type Content interface {
	// Bytes returns the content, which must not be changed. It may fail after the content was passed to a Store.
	Bytes() ([]byte, error)
}

// Numbered is a [Content] that knows its position among the snapshots of its page.
type Numbered struct {
	Content
	Draft  string // id of the draft that the snapshot belongs to
	Number int64  // rises within the draft
}

// Bytes is a [Content] in memory. Nobody changes it.
type Bytes []byte

// Bytes implements [Content].
func (b Bytes) Bytes() ([]byte, error) { return b, nil }

func (c *Commit) sized(bytes int64) {
	if c.Sized != nil {
		c.Sized(bytes)
	}
}

func (c *Commit) committed(g Generation) {
	if c.Committed != nil {
		c.Committed(g)
	}
}

// Taken returns the commit with its content instead of Take. A [Numbered] content sets the draft and number of the
// commit.
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

func (c *Commit) progress(p Phase) {
	if c.Progress != nil {
		c.Progress(p)
	}
}

// Digest returns the SHA-256 of the content in lower-case hex. It is a port because browsers have a fast one, and
// crypto/sha256 would enlarge the Wasm.
type Digest func(ctx context.Context, content []byte) (string, error)

// Files is the small part of a file system that [Layout] uses: flat folders, and files written once and never changed.
//
// Implementations must satisfy:
//   - Write returns when the file would survive a crash. It is never called for a name that was written before. A file
//     whose Write failed or was killed may be absent, torn or whole.
//   - Files that one page has written are listed and read by every page.
//   - A full storage returns an error that matches ErrQuota.
type Files interface {
	// List returns the names in a folder, in any order; none if the folder does not exist.
	List(ctx context.Context, folder string) ([]string, error)
	// Read fails with an error that matches fs.ErrNotExist if there is no such file, or if the file cannot be read
	// because it is still being written.
	Read(ctx context.Context, folder, name string) ([]byte, error)
	Write(ctx context.Context, folder, name string, content []byte) error
	// Remove removes a file. A file that does not exist is no error.
	Remove(ctx context.Context, folder, name string) error
	// Save writes two files, the first with its [Seal], the second once the first is durable. It returns the names in
	// FolderIndex as List would afterwards. Both files may exist and be empty at the beginning. Save is one call for
	// speed: the storage is in another thread, and the files can be opened while the content is taken. If it fails with
	// an error that matches ErrNotBegun, the index is empty or absent, and stays so.
	Save(ctx context.Context, s Saving) (names []string, err error)
	// Preopen announces the files of the next Save, if it comes soon. They can then be made in advance, empty, and opened.
	// Preopen does not wait for them.
	Preopen(name, index string)
}

var (
	// ErrNotBegun is the error of [Files.Save] if it has not begun to write the index.
	ErrNotBegun = errors.New("the index was not begun")
	// ErrNotOpened is the error, beside ErrNotBegun, if the storage has not opened a file for seconds. The storage may
	// never open it, and may open another one at once.
	ErrNotOpened = errors.New("the storage has not opened a file")
)

// Saving is the argument of [Files.Save].
type Saving struct {
	Name  string                                     // in FolderHistory, with the content that
	Take  func(ctx context.Context) (Content, error) // returns, called once
	Index string                                     // in FolderIndex, with the text that Encode returns
	// Note returns the note of the [Seal]. It is called after Take.
	Note func() string
	// Encode is called once the content is known, durable or not. Its arguments are the length in bytes, the SHA-256 in
	// lower-case hex, and the names in FolderIndex at a moment since the call of Save. If Take or Encode fails, the
	// index is not begun and Save returns the error.
	Encode func(bytes int64, sha256 string, names []string) ([]byte, error)
}
