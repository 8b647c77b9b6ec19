package autosavetest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/autosave"
)

// DraftStorage is a storage of drafts in memory, shared by the pages that open the same document.
type DraftStorage struct {
	mu        sync.Mutex
	drafts    map[string]*storedDraft
	discarded map[string]string // the last text of each draft that a user has discarded
}

// storedDraft is the file of one draft.
type storedDraft struct {
	autosave.Draft
	text []byte
	open *PageDrafts // the page with the open file; nil if that page has sealed it or is gone
}

// NewDraftStorage returns an empty storage.
func NewDraftStorage() *DraftStorage {
	return &DraftStorage{drafts: make(map[string]*storedDraft), discarded: make(map[string]string)}
}

// PageDrafts is the [autosave.Drafts] of one page, and the page's operations on its own draft.
type PageDrafts struct {
	storage *DraftStorage
	steps   *Steps
	// Unsaved returns the text of the page that no commit contains; ok is false if everything is saved. Seal calls it.
	// nil means that everything is saved.
	Unsaved func() (d autosave.Draft, text []byte, ok bool)
	// Discarded, unless nil, is called by Seal if the text up to the number was discarded or merged: the page no longer counts it as unsaved.
	Discarded func(number int64)
}

// PageDrafts returns the drafts of one page. The steps, unless nil, count the operations and make them fail.
func (s *DraftStorage) PageDrafts(steps *Steps) *PageDrafts {
	if steps == nil {
		steps = new(Steps)
	}
	return &PageDrafts{storage: s, steps: steps}
}

// Journal writes the present text of the page and keeps the file open, as a page does while the user types.
func (d *PageDrafts) Journal(draft autosave.Draft, text []byte) {
	if fault, _ := d.steps.step(context.Background(), "journal "+draft.ID); fault == 0 || fault == Lied {
		draft.Cause = autosave.CauseCrashed // the next page finds this cause
		d.put(draft, text, d)
	}
}

// put stores the draft unless a later snapshot of it exists, or a user has discarded the text. It reports whether there is a draft then.
func (d *PageDrafts) put(draft autosave.Draft, text []byte, open *PageDrafts) bool {
	draft.Bytes = int64(len(text))
	d.storage.mu.Lock()
	defer d.storage.mu.Unlock()
	before, ok := d.storage.drafts[draft.ID]
	if gone, known := d.storage.discarded[draft.ID]; known && !ok && gone == string(text) {
		return false
	}
	if !ok || before.Number <= draft.Number {
		delete(d.storage.discarded, draft.ID)
		d.storage.drafts[draft.ID] = &storedDraft{draft, bytes.Clone(text), open}
	}
	return true
}

// Saved empties the draft up to the number: a commit contains it.
func (d *PageDrafts) Saved(id string, number int64) { _ = d.Remove(context.Background(), id, number) }

// End closes the page's open files, as the browser does when the page is gone.
func (d *PageDrafts) End() {
	d.steps.Kill()
	d.storage.mu.Lock()
	defer d.storage.mu.Unlock()
	for _, f := range d.storage.drafts {
		if f.open == d {
			f.open = nil
		}
	}
}

// List implements [autosave.Drafts].
func (d *PageDrafts) List(ctx context.Context) ([]autosave.Draft, error) {
	if _, err := d.steps.step(ctx, "list drafts"); err != nil {
		return nil, err
	}
	d.storage.mu.Lock()
	defer d.storage.mu.Unlock()
	var all []autosave.Draft
	for _, f := range d.storage.drafts {
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
func (d *PageDrafts) Read(ctx context.Context, id string) ([]byte, error) {
	if _, err := d.steps.step(ctx, "read draft "+id); err != nil {
		return nil, err
	}
	d.storage.mu.Lock()
	defer d.storage.mu.Unlock()
	f, ok := d.storage.drafts[id]
	if !ok || f.open != nil {
		return nil, &autosave.Error{Code: autosave.CodeNotFound, Operation: autosave.OpRead, Resource: id, Detail: "there is no such draft"}
	}
	return bytes.Clone(f.text), nil
}

// Remove implements [autosave.Drafts].
func (d *PageDrafts) Remove(ctx context.Context, id string, number int64) error {
	return d.remove(ctx, id, number, false)
}

// Discard implements [autosave.Drafts].
func (d *PageDrafts) Discard(ctx context.Context, id string, number int64) error {
	return d.remove(ctx, id, number, true)
}

func (d *PageDrafts) remove(ctx context.Context, id string, number int64, discards bool) error {
	fault, planted := d.steps.step(ctx, "remove draft "+id)
	if fault == Refused || fault == Torn {
		return planted
	}
	d.storage.mu.Lock()
	defer d.storage.mu.Unlock()
	f, ok := d.storage.drafts[id]
	if ok && (f.open == nil || f.open == d) && f.Number <= number {
		delete(d.storage.drafts, id)
		if discards && f.open == nil {
			d.storage.discarded[id] = string(f.text)
		}
	}
	return planted
}

// Seal implements [autosave.Drafts].
func (d *PageDrafts) Seal(ctx context.Context, cause autosave.Cause) (*autosave.Draft, error) {
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
	stored := d.put(draft, text, nil)
	if !stored && d.Discarded != nil {
		d.Discarded(draft.Number)
	}
	if planted != nil || !stored {
		return nil, planted
	}
	return &draft, nil
}

// Texts returns the texts of all drafts, also those of live pages, in no order.
func (s *DraftStorage) Texts() (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.drafts {
		texts = append(texts, string(f.text))
	}
	return texts
}

// Page returns one page in the form that the suite needs.
func (s *DraftStorage) Page() DraftPage {
	d := s.PageDrafts(nil)
	return DraftPage{Drafts: d, Journal: d.Journal, Saved: d.Saved, End: d.End,
		Type: func(draft autosave.Draft, text []byte) {
			d.Unsaved = func() (autosave.Draft, []byte, bool) { return draft, text, text != nil }
		}}
}
