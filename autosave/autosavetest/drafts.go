package autosavetest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Shelf is a storage of drafts in memory, shared by the pages that open the same document.
type Shelf struct {
	mu     sync.Mutex
	drafts map[string]*shelved
}

// shelved is the file of one draft.
type shelved struct {
	autosave.Draft
	text []byte
	open *Desk // the page that has it open; nil if that page has sealed it or is gone
}

// NewShelf returns an empty storage.
func NewShelf() *Shelf { return &Shelf{drafts: make(map[string]*shelved)} }

// Desk is the [autosave.Drafts] of one page, and the page's operations on its own draft.
type Desk struct {
	shelf *Shelf
	steps *Steps
	// Unsaved returns the text of the page that no commit contains; ok is false if everything is saved. Seal calls it.
	// nil means that everything is saved.
	Unsaved func() (d autosave.Draft, text []byte, ok bool)
}

// Desk returns the drafts of one page. The steps, unless nil, count the operations and make them fail.
func (s *Shelf) Desk(steps *Steps) *Desk {
	if steps == nil {
		steps = new(Steps)
	}
	return &Desk{shelf: s, steps: steps}
}

// Journal writes the present text of the page and keeps the file open, as a page does while the user types.
func (d *Desk) Journal(draft autosave.Draft, text []byte) {
	if fault, _ := d.steps.step(context.Background(), "journal "+draft.ID); fault == 0 || fault == Lied {
		draft.Cause = autosave.CauseCrashed // the next page finds this cause
		d.put(draft, text, d)
	}
}

// put stores the draft unless a later snapshot of it exists.
func (d *Desk) put(draft autosave.Draft, text []byte, open *Desk) {
	draft.Bytes = int64(len(text))
	d.shelf.mu.Lock()
	defer d.shelf.mu.Unlock()
	if before, ok := d.shelf.drafts[draft.ID]; ok && before.Number > draft.Number {
		return
	}
	d.shelf.drafts[draft.ID] = &shelved{draft, bytes.Clone(text), open}
}

// Saved empties the draft up to the number: a commit contains it.
func (d *Desk) Saved(id string, number int64) { _ = d.Remove(context.Background(), id, number) }

// End closes the page's open files, as the browser does when the page is gone.
func (d *Desk) End() {
	d.steps.Kill()
	d.shelf.mu.Lock()
	defer d.shelf.mu.Unlock()
	for _, f := range d.shelf.drafts {
		if f.open == d {
			f.open = nil
		}
	}
}

// List implements [autosave.Drafts].
func (d *Desk) List(ctx context.Context) ([]autosave.Draft, error) {
	if _, err := d.steps.step(ctx, "list drafts"); err != nil {
		return nil, err
	}
	d.shelf.mu.Lock()
	defer d.shelf.mu.Unlock()
	var all []autosave.Draft
	for _, f := range d.shelf.drafts {
		if f.open == nil {
			all = append(all, f.Draft)
		}
	}
	slices.SortFunc(all, func(a, b autosave.Draft) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Number, a.Number), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Read implements [autosave.Drafts].
func (d *Desk) Read(ctx context.Context, id string) ([]byte, error) {
	if _, err := d.steps.step(ctx, "read draft "+id); err != nil {
		return nil, err
	}
	d.shelf.mu.Lock()
	defer d.shelf.mu.Unlock()
	f, ok := d.shelf.drafts[id]
	if !ok || f.open != nil {
		return nil, &autosave.Error{Code: autosave.CodeNotFound, Operation: autosave.OpRead, Resource: id, Detail: "there is no such draft"}
	}
	return bytes.Clone(f.text), nil
}

// Remove implements [autosave.Drafts].
func (d *Desk) Remove(ctx context.Context, id string, number int64) error {
	fault, planted := d.steps.step(ctx, "remove draft "+id)
	if fault == Refused || fault == Torn {
		return planted
	}
	d.shelf.mu.Lock()
	defer d.shelf.mu.Unlock()
	f, ok := d.shelf.drafts[id]
	if ok && (f.open == nil || f.open == d) && f.Number <= number {
		delete(d.shelf.drafts, id)
	}
	return planted
}

// Seal implements [autosave.Drafts].
func (d *Desk) Seal(ctx context.Context, cause autosave.Cause) (*autosave.Draft, error) {
	fault, planted := d.steps.step(ctx, "seal")
	if fault == Refused || fault == Torn {
		return nil, planted
	}
	if d.Unsaved == nil {
		return nil, planted
	}
	draft, text, ok := d.Unsaved()
	if !ok {
		return nil, planted
	}
	draft.Cause, draft.Bytes = cause, int64(len(text))
	d.put(draft, text, nil)
	if planted != nil {
		return nil, planted
	}
	return &draft, nil
}

// Texts returns the texts of all drafts, also those of live pages, in no order.
func (s *Shelf) Texts() (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.drafts {
		texts = append(texts, string(f.text))
	}
	return texts
}

// Page returns one page in the form that the suite needs.
func (s *Shelf) Page() DraftPage {
	d := s.Desk(nil)
	return DraftPage{Drafts: d, Journal: d.Journal, Saved: d.Saved, End: d.End,
		Type: func(draft autosave.Draft, text []byte) {
			d.Unsaved = func() (autosave.Draft, []byte, bool) { return draft, text, text != nil }
		}}
}
