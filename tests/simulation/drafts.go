package simulation

import (
	"context"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// drafts are a tab's access to the drafts of its origin: its [autosave.Drafts].
type drafts struct {
	tab        *tab
	pageDrafts *autosavetest.PageDrafts
}

// List implements [autosave.Drafts].
func (d *drafts) List(ctx context.Context) ([]autosave.Draft, error) {
	if err := d.tab.step(); err != nil {
		return nil, err
	}
	list, err := d.pageDrafts.List(ctx)
	if gone := d.tab.step(); gone != nil {
		return nil, gone
	}
	return list, err
}

// Read implements [autosave.Drafts].
func (d *drafts) Read(ctx context.Context, id string) ([]byte, error) {
	if err := d.tab.step(); err != nil {
		return nil, err
	}
	text, err := d.pageDrafts.Read(ctx, id)
	if gone := d.tab.step(); gone != nil {
		return nil, gone
	}
	return text, err
}

// Remove implements [autosave.Drafts].
func (d *drafts) Remove(ctx context.Context, id string, number int64) error {
	return d.remove(func() error { return d.pageDrafts.Remove(ctx, id, number) })
}

// Discard implements [autosave.Drafts].
func (d *drafts) Discard(ctx context.Context, id string, number int64) error {
	return d.remove(func() error { return d.pageDrafts.Discard(ctx, id, number) })
}

func (d *drafts) remove(how func() error) error {
	if err := d.tab.step(); err != nil {
		return err
	}
	err := how()
	if gone := d.tab.step(); gone != nil {
		return gone
	}
	return err
}

// Seal implements [autosave.Drafts].
func (d *drafts) Seal(ctx context.Context, cause autosave.Cause) (*autosave.Draft, error) {
	if err := d.tab.step(); err != nil {
		return nil, err
	}
	draft, err := d.pageDrafts.Seal(ctx, cause)
	if gone := d.tab.step(); gone != nil {
		return nil, gone
	}
	return draft, err
}

// files returns a tab's access to the files of its origin. Each smallest step takes time and may fail.
func files(t *tab) autosave.Files {
	return t.at.disk.Stepped(func(string) autosavetest.Fault {
		if t.step() != nil {
			return autosavetest.Refused
		}
		_, before, after := t.at.faults.next()
		switch {
		case before != nil:
			return autosavetest.Refused
		case after != nil:
			return autosavetest.Lied
		}
		return 0
	})
}
