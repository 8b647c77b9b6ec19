// Package recorded makes the events of changes: of locks, of questions to a holder, and of contents.
package recorded

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/server/asks"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// Lock makes the event of a change of a document's lock.
func Lock(document string, c locks.Change) []kv.Op {
	if c.Locked {
		return []kv.Op{events.Record(document, events.Event{
			Type: events.Locked, HolderID: c.Lease.Holder.ID, HolderName: c.Lease.Holder.Name,
			LockedAt: events.At(c.Lease.LockedAt), ExpiresAt: events.At(c.Lease.ExpiresAt),
		})}
	}
	return []kv.Op{content.ForgetDeletion(document), events.Record(document, events.Event{
		Type: events.Unlocked, Reason: string(c.Reason), Token: c.Lease.Token, ByID: c.By.ID, ByName: c.By.Name, Why: c.Why,
	})}
}

// Ask makes the event of a question to a holder.
func Ask(document string, a asks.Ask, ended asks.Outcome) []kv.Op {
	e := events.Event{Type: events.Asked, Ask: a.ID, Token: a.Token, HolderID: a.By.ID, HolderName: a.By.Name}
	if ended != "" {
		e.Type, e.Reason = events.AskEnded, string(ended)
	} else {
		e.AskedAt = events.At(time.UnixMilli(a.At))
	}
	return []kv.Op{events.Record(document, e)}
}

// Content makes the event of a save.
func Content(document string, saved content.Info) []kv.Op {
	return []kv.Op{events.Record(document, events.Event{
		Type: events.Updated, ETag: saved.ETag, Token: saved.Token, SavedAt: events.At(saved.SavedAt),
	})}
}

// State reads the whole present state of a document.
func State(table *locks.Table, contents *content.Store) func(context.Context, string) (events.Event, error) {
	return func(ctx context.Context, document string) (events.Event, error) {
		lease, revision, err := table.At(ctx, locks.Document(document))
		if err != nil {
			return events.Event{}, err
		}
		locked := lease.Token != 0
		e := events.Event{Revision: revision, IsLocked: &locked}
		if locked {
			e.HolderID, e.HolderName, e.Token = lease.Holder.ID, lease.Holder.Name, lease.Token
			e.LockedAt, e.ExpiresAt = events.At(lease.LockedAt), events.At(lease.ExpiresAt)
		}
		saved, err := contents.Describe(ctx, document, revision)
		switch {
		case err == nil:
			e.ETag, e.ContentToken, e.SavedAt = saved.ETag, saved.Token, events.At(saved.SavedAt)
		case !errors.Is(err, content.ErrNotFound):
			return e, err
		}
		return e, nil
	}
}
