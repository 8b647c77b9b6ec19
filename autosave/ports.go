package autosave

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// The methods of a Config call what the page has configured. They change nothing of a Saver, so any goroutine may call them.

// The names of the ports in error messages.
const (
	theStore  = "the store"
	theSave   = "the page's snapshot or the store"
	theDrafts = "the drafts' storage"
)

// document is the name of the document.
func (c *Config) document() string { return lock.Name("", c.Lock.Path) }

// editors returns the holders whose locks keep this page from editing, the oldest first.
func (c *Config) editors(ctx context.Context, limit time.Duration) []lock.Holder {
	found, _ := c.inspect(ctx, limit)
	return found
}

// inspect returns the same as editors. awaited reports whether somebody edits, or waits for a document below this one. If the limit has ended
// before the lock has answered, inspect cannot know, and awaited is true.
func (c *Config) inspect(ctx context.Context, limit time.Duration) (found []lock.Holder, awaited bool) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	holders, waiters, _ := c.Locks.Inspect(ctx)
	own, document := c.Locks.OwnerID(), c.document()
	for _, h := range holders {
		if keepsFromEditing(h, document, h.OwnerID == own) {
			found = append(found, h)
		}
	}
	awaited = ctx.Err() != nil || len(found) > 0
	for _, w := range waiters {
		awaited = awaited || keepsFromEditing(lock.Holder{Mode: w.Mode, Paths: w.Paths}, document, true)
	}
	return found, awaited
}

// whoEdits returns the first of the editors, or nil.
func (c *Config) whoEdits(ctx context.Context, limit time.Duration) *lock.Holder {
	for _, h := range c.editors(ctx, limit) {
		return &h
	}
	return nil
}

// snapshot returns the present content of the page, as bytes.
func (c *Config) snapshot(ctx context.Context) ([]byte, error) {
	content, err := snapshot(ctx, c.Snapshot)
	if err != nil {
		return nil, err
	}
	return content.Bytes()
}

// veto asks the page whether it agrees to a handover, and returns its refusal. No answer means consent.
func (c *Config) veto(ctx context.Context, from string) error {
	if c.OnHandover == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, vetoLimit)
	defer stop()
	said := make(chan error, 1)
	go func() { said <- c.OnHandover(ctx, from) }()
	select {
	case err := <-said:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	return nil
}

// list returns the generations of the store.
func (c *Config) list(ctx context.Context) ([]Generation, error) {
	var all []Generation
	if err := answered(ctx, CodeReadFailed, theStore, func(ctx context.Context) (err error) { all, err = c.Store.List(ctx); return err }); err != nil {
		return nil, err
	}
	return all, nil
}

// seal stores the unsaved text of the page as a draft. It returns nil if everything is saved or discarded, and if there are no
// Drafts.
func (c *Config) seal(ctx context.Context, cause Cause) (*Draft, error) {
	if c.Drafts == nil {
		return nil, nil
	}
	ctx, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	var d *Draft
	err := answered(ctx, CodeWriteFailed, theDrafts, func(ctx context.Context) (err error) { d, err = c.Drafts.Seal(ctx, cause); return err })
	if err != nil {
		return nil, asError(err, CodeWriteFailed, "the text of this page could not be stored as a draft")
	}
	return d, nil
}

func (c *Config) readDraft(ctx context.Context, id string) ([]byte, error) {
	return readFrom(ctx, theDrafts, c.Drafts.Read, id)
}

func (c *Config) removeDraft(ctx context.Context, d Draft) error {
	return answered(ctx, CodeWriteFailed, theDrafts, func(ctx context.Context) error { return c.Drafts.Remove(ctx, d.ID, d.Number) })
}

func (c *Config) discardDraft(ctx context.Context, d Draft) error {
	return answered(ctx, CodeWriteFailed, theDrafts, func(ctx context.Context) error { return c.Drafts.Discard(ctx, d.ID, d.Number) })
}

func snapshot(ctx context.Context, take func(context.Context) (Content, error)) (Content, error) {
	content, err := take(ctx)
	if err != nil {
		return nil, asError(err, CodeSnapshotFailed, "the page could not say what to save")
	}
	return content, nil
}

func readFrom(ctx context.Context, what string, read func(context.Context, string) ([]byte, error), id string) ([]byte, error) {
	var found []byte
	if err := answered(ctx, CodeReadFailed, what, func(ctx context.Context) (err error) { found, err = read(ctx, id); return err }); err != nil {
		return nil, err
	}
	return found, nil
}

func listFrom(ctx context.Context, d Drafts) ([]Draft, error) {
	var all []Draft
	if err := answered(ctx, CodeReadFailed, theDrafts, func(ctx context.Context) (err error) { all, err = d.List(ctx); return err }); err != nil {
		return nil, err
	}
	return all, nil
}
