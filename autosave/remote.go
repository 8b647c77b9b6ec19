package autosave

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Storage names the place where a document is saved.
type Storage string

// The storages.
const (
	StorageOPFS      Storage = "opfs"      // in this browser, in files
	StorageIndexedDB Storage = "indexeddb" // in this browser, where it stores no files
	StorageServer    Storage = "server"    // on a server: the Store is a [RemoteStore]
)

// RemoteStore is a [Store] that keeps the current generation on another machine, which does not always answer.
type RemoteStore interface {
	Store
	// Online reports whether the other machine answered the last request.
	Online() bool
	// Watch calls changed after each change of Online, until stop is called. changed must not block.
	Watch(changed func()) (stop func())
	// Preview returns the last generation of which this machine has a copy, without asking the other machine. The error
	// matches ErrNotFound if there is none.
	Preview(ctx context.Context) (Generation, []byte, error)
}

// remoteStore returns the store if it is on another machine, or nil.
func (c *Config) remoteStore() RemoteStore {
	d, _ := c.Store.(RemoteStore)
	return d
}

// offline reports whether the document is saved on another machine that does not answer.
func (c *Config) offline() bool {
	d := c.remoteStore()
	return d != nil && !d.Online()
}

// where adds to a state where the document is saved, and whether that machine answers.
func (c *Config) where(state State) State {
	state.Storage = cmp.Or(c.Storage, StorageOPFS)
	if d := c.remoteStore(); d != nil {
		state.Storage, state.Online = StorageServer, d.Online()
	}
	return state
}

// watch notifies the page each time the other machine stops answering, and each time it answers again.
func (s *status) watch() {
	if d := s.config.remoteStore(); d != nil {
		context.AfterFunc(s.life, d.Watch(s.wakeLoop))
	}
}

// preview shows the page the local copy of a document that cannot be loaded. A page that shows a text, or into which
// something was typed, keeps that text.
func (s *status) preview(ctx context.Context, reason lock.ReadonlyReason, step func(func()) bool) {
	if reason != lock.ReasonAcquireFailed || !s.config.offline() {
		return
	}
	ctx, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	g, content, err := s.config.remoteStore().Preview(ctx)
	if err != nil {
		return
	}
	step(func() {
		if s.newest == nil && s.changes.count() == 0 {
			s.emit(Event{Type: EventPreview, Content: content, Loaded: true, Base: g.ID})
		}
	})
}

// letPass lets another page of this browser that asks for the lock go first, if this page waits in the queue.
//
// With a server, only the first waiting page of this browser also waits at the server, and only its request reaches the editor there. So this
// page joins the queue again, behind the other page. A page that asks for a document below this one shares the lock of this document with the
// editor, and it cannot do so while this page waits for that lock. So this page leaves the queue until nobody edits, or waits for a document
// below this one, but at most for the time that the other page and the editor have.
func (p *page) letPass(m Message) {
	here, far := p.config.document(), p.config.remoteStore() != nil
	below := m.Document != here && strings.HasPrefix(m.Document+"/", here+"/")
	if p.role != viewing || !p.queued || p.asking != nil && far || !below && !far {
		return
	}
	p.stop()
	p.enter(viewing)
	if !below {
		p.lineUp(lateInspectLimit) // meanwhile, a page without standby joins the queue
		return
	}
	p.queued = true
	end := time.Now().Add(vetoLimit + 2*(handoverLimit+min(max(m.Grace, DefaultGrace), graceLimit)))
	if end.After(p.letsPassUntil) {
		p.letsPassUntil = end
	}
	end = p.letsPassUntil
	p.background(func(ctx context.Context, step func(func()) bool) {
		for awaited := true; awaited && wait.For(ctx, lateInspectLimit) == nil && time.Until(end) > 0; {
			_, awaited = p.config.inspect(ctx, lateInspectLimit)
		}
		step(func() { p.lineUp(0) })
	})
}

// queueRemotely makes a page without standby wait in the queue while it asks, because only a waiting page can ask an editor on another machine.
// leave ends the waiting. A page that has just lost the lock gets autosave:readonly first.
func (p *page) queueRemotely(ctx context.Context) (leave func()) {
	if p.config.remoteStore() == nil {
		return func() {}
	}
	for waits := true; waits; {
		var verdict chan struct{}
		p.do(func() {
			if waits, verdict = p.preparingReadonly, p.verdict; !waits && p.role == viewing {
				p.stop()
				p.enter(viewing)
				p.lineUp(0)
			}
		})
		waits = waits && p.await(ctx, verdict) == nil
	}
	return func() {
		p.do(func() {
			if p.role == viewing && p.queued {
				p.stop()
				p.enter(viewing)
			}
		})
	}
}
