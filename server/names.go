package server

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// names removes the events of documents that have no content and have not been locked for a long time. Otherwise each name that was ever
// locked would leave a key. A client that resumes from an earlier revision gets the present state, because the store does not have that
// history any more. It is for the embedded store, whose history this server bounds.
type names struct {
	store *kv.Store
	delay time.Duration // longer than the history is kept: etcd compacts with a lag of up to 1.1 times its retention

	mu    sync.Mutex
	ended []endedLock // in the order of their ends
	// missed are the first and the last lock that ended and did not fit into ended. Those of a former run count as one.
	missed []endedLock
}

type endedLock struct {
	document string
	revision int64
	at       time.Time
}

// maxEnded bounds the memory. Names that do not fit are found by a look at all names. Tests change it.
var maxEnded = 100_000

// namesAtOnce is how many names go in one transaction.
const namesAtOnce = 40

func newNames(store *kv.Store, history time.Duration) *names {
	return &names{store: store, delay: 3 * history, missed: []endedLock{{revision: math.MaxInt64, at: time.Now()}}}
}

// note is called when the lock of a document has ended.
func (n *names) note(document string, revision int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := endedLock{document, revision, time.Now()}
	if len(n.ended) < maxEnded {
		n.ended = append(n.ended, l)
		return
	}
	n.missed = append(n.missed[:min(len(n.missed), 1)], l)
}

// tidy removes the names that are due. Its cost grows with the locks that have ended since the last call. After a start, and after more locks
// have ended than are remembered, it grows once with the number of documents.
func (n *names) tidy(ctx context.Context, now time.Time) error {
	for due := n.due(now); len(due) > 0; due = n.due(now) {
		if err := n.remove(ctx, due); err != nil {
			n.mu.Lock()
			n.ended = append(due, n.ended...)
			n.mu.Unlock()
			return err
		}
	}
	n.mu.Lock()
	missed := slices.Clone(n.missed)
	n.mu.Unlock()
	if len(missed) == 0 || now.Sub(missed[0].at) < n.delay {
		return nil
	}
	if err := n.removeMissed(ctx, missed[0]); err != nil {
		return err
	}
	n.mu.Lock()
	n.missed = n.missed[1:]
	n.mu.Unlock()
	return nil
}

// removeMissed looks at all names. It reads each page as it is at that moment: a large store compacts its history before the last page.
func (n *names) removeMissed(ctx context.Context, missed endedLock) error {
	for after := events.Prefix; ; {
		entries, err := n.store.Page(ctx, events.Prefix, after, namesAtOnce)
		if err != nil || len(entries) == 0 {
			return err
		}
		var left []endedLock
		for _, e := range entries {
			if after = e.Key; e.Modified <= missed.revision {
				left = append(left, endedLock{document: strings.TrimPrefix(e.Key, events.Prefix), revision: e.Modified})
			}
		}
		if err := n.remove(ctx, left); err != nil {
			return err
		}
	}
}

// due takes the first of those that have ended long enough ago.
func (n *names) due(now time.Time) (due []endedLock) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.ended) > 0 && len(due) < namesAtOnce && now.Sub(n.ended[0].at) >= n.delay {
		due, n.ended = append(due, n.ended[0]), n.ended[1:]
	}
	return due
}

// remove removes events that are the last of their document, where it has no content. Two locks of one name are not in one
// transaction: the later one alone has the last event.
func (n *names) remove(ctx context.Context, list []endedLock) error {
	last := map[string]int64{}
	for _, l := range list {
		last[l.document] = max(last[l.document], l.revision)
	}
	var txns []kv.Txn
	for document, revision := range last {
		txns = append(txns, kv.Txn{
			If:   []kv.Cond{kv.ChangedAt(events.Prefix+document, revision), content.Absent(document)},
			Then: []kv.Op{events.Forget(document)},
		})
	}
	if len(txns) == 0 {
		return nil
	}
	_, err := n.store.CommitEach(ctx, txns)
	return err
}
