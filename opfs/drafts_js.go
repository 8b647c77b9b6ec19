//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// Drafts is the [autosave.Drafts] under <root>/autosave/drafts/, as files or in IndexedDB. journal.js writes them: the
// page hands each snapshot to it without Go.
type Drafts struct {
	folder   *Dir
	path     []string
	journals safejs.Value
	page     DraftPage
}

// DraftPage is the part of a page that [Drafts] calls.
type DraftPage interface {
	// Seal makes the page store its text that no commit contains, and close the file. It returns an object whose field
	// draft is the draft, or undefined if everything is saved.
	Seal(ctx context.Context, cause autosave.Cause) (safejs.Value, error)
	// Rescue makes the page bring the entries of other pages in localStorage into the folder. The error matches
	// context.DeadlineExceeded while the page still does that.
	Rescue(ctx context.Context, folder string) error
}

// Drafts implements [Place].
func (f *Files) Drafts(path []string, journals safejs.Value, page DraftPage) *Drafts {
	return &Drafts{folder: f.dir, path: path, journals: journals, page: page}
}

// Folder returns the folder that contains the drafts and the generations of the document.
func (d *Drafts) Folder() string { return d.folder.String() }

// Bind says whose drafts the page with this number writes.
func (d *Drafts) Bind(page int, ownerID, ownerName string) {
	_, _ = d.journals.Call("bind", page, d.Folder(), ownerID, ownerName) // if this fails, nothing is written, and the page notices
}

// List implements [autosave.Drafts].
func (d *Drafts) List(ctx context.Context) ([]autosave.Draft, error) {
	// A text that cannot be brought into the folder stays in localStorage. One that is on its way there is waited for.
	if err := d.page.Rescue(ctx, d.Folder()); errors.Is(err, context.DeadlineExceeded) {
		return nil, errors.Join(autosave.ErrIncomplete, err)
	}
	list, err := d.call(ctx, "list")
	if err != nil {
		return nil, err
	}
	n, err := list.Length()
	if err != nil {
		return nil, err
	}
	all := make([]autosave.Draft, n)
	for i := range all {
		draft, err := list.Index(i)
		if err != nil {
			return nil, err
		}
		all[i] = d.decode(draft)
	}
	return all, nil
}

// Read implements [autosave.Drafts].
func (d *Drafts) Read(ctx context.Context, id string) ([]byte, error) {
	text, err := d.call(ctx, "read", id)
	if err != nil {
		return nil, err
	}
	if text.Type() != safejs.TypeObject {
		return nil, &autosave.Error{Code: autosave.CodeNotFound, Operation: autosave.OpRead, Resource: id,
			Detail: "there is no such draft: it was resolved, or its page still edits it"}
	}
	return jsbridge.Bytes(text)
}

// Remove implements [autosave.Drafts].
func (d *Drafts) Remove(ctx context.Context, id string, number int64) error {
	return d.remove(ctx, id, number, false)
}

// Discard implements [autosave.Drafts].
func (d *Drafts) Discard(ctx context.Context, id string, number int64) error {
	return d.remove(ctx, id, number, true)
}

// remove removes a draft up to the number. A text in localStorage may build on it, of a page that has ended since the list: that text comes
// into the draft first, and has a higher number.
func (d *Drafts) remove(ctx context.Context, id string, number int64, discards bool) error {
	if err := d.page.Rescue(ctx, d.Folder()); err != nil {
		return err
	}
	_, err := d.call(ctx, "remove", id, number, discards)
	return err
}

// Seal implements [autosave.Drafts].
func (d *Drafts) Seal(ctx context.Context, cause autosave.Cause) (*autosave.Draft, error) {
	answer, err := d.page.Seal(ctx, cause)
	if err != nil {
		return nil, err
	}
	sealed, err := answer.Get("draft")
	if err != nil || sealed.Type() != safejs.TypeObject {
		return nil, err
	}
	draft := d.decode(sealed)
	return &draft, nil
}

func (d *Drafts) call(ctx context.Context, method string, args ...any) (safejs.Value, error) {
	value, err := call(ctx, d.journals, method, append([]any{d.Folder()}, args...)...)
	return value, d.folder.explain(ctx, d.Folder()+"/drafts", err)
}

// decode reads a draft as journal.js describes it. A draft without a cause belongs to a page that ended without notice.
func (d *Drafts) decode(v safejs.Value) autosave.Draft {
	draft := autosave.Draft{Path: d.path, ID: jsbridge.Property(v, "id"), OwnerID: jsbridge.Property(v, "ownerId"),
		OwnerName: jsbridge.Property(v, "ownerName"), Base: jsbridge.Property(v, "base"), Cause: autosave.Cause(jsbridge.Property(v, "cause")),
		Number: jsbridge.Number(v, "number"), Bytes: jsbridge.Number(v, "bytes"), At: time.UnixMilli(jsbridge.Number(v, "at"))}
	if draft.Cause == "" {
		draft.Cause = autosave.CauseCrashed
	}
	return draft
}
