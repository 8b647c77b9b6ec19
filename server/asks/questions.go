package asks

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// inquiry is the set of questions of one asker: one for each document of which a lock blocks the request.
type inquiry struct {
	questions []question
	known     map[string]bool // the leases that blocked the request when the questions were stored, by their ids
	lease     *kv.Lease       // of the keys; nil while there are none
}

// question is a question in the store.
type question struct {
	document string
	ask      Ask
	held     locks.Lease // the requested lock
	revision int64       // of the question
}

// about returns the question about a document, or nil.
func (in *inquiry) about(document string) *question {
	for i := range in.questions {
		if in.questions[i].document == document {
			return &in.questions[i]
		}
	}
	return nil
}

// pose stores questions to the holders that block the request. It stores none if no other client holds the lock, and none while a lease of
// the asker itself blocks the request and the request does not replace that lease, because no answer would help.
func (relay *Relay) pose(ctx context.Context, r locks.Request) (*inquiry, error) {
	in := &inquiry{}
	for {
		done, err := relay.poseOnce(ctx, r, in)
		if done {
			return in, nil
		}
		relay.endAll(ctx, in, nil, "") // nobody has received one
		if err != nil {
			if in.lease != nil {
				release(ctx, in.lease)
			}
			return nil, err
		}
	}
}

// poseOnce is pose. It reports false if something changed meanwhile.
func (relay *Relay) poseOnce(ctx context.Context, r locks.Request, in *inquiry) (done bool, err error) {
	blocking, _, err := relay.table.Blocking(ctx, r.Paths[0])
	if err != nil {
		return false, err
	}
	in.questions, in.known = nil, map[string]bool{}
	vain := false
	for _, held := range blocking {
		in.known[held.ID] = true
		vain = vain || held.Holder.ID == r.Holder.ID && !r.Fresh && !slices.Contains(r.Replace, held.Token)
	}
	for _, held := range blocking {
		document := documentOf(held, r)
		if vain || held.Holder.ID == r.Holder.ID || in.about(document) != nil {
			continue
		}
		q := question{document: document, held: held,
			ask: Ask{ID: rand.Text()[:16], Token: held.Token, By: r.Holder, Ticket: r.Ticket, At: time.Now().UnixMilli()}}
		if err := relay.put(ctx, in, &q); err != nil || q.revision == 0 {
			return false, err
		}
		in.questions = append(in.questions, q)
	}
	return true, nil
}

// documentOf returns the document whose holder is asked: the requested one, or the one of another lock that is in the way.
func documentOf(held locks.Lease, r locks.Request) string {
	paths := append(held.Paths, r.Paths...)
	if held.Records(r.Paths[0]) {
		paths = r.Paths
	}
	for _, p := range paths {
		if document, ok := p.Document(); ok {
			return document
		}
	}
	return ""
}

// put stores a question and sets its revision, unless the question of another asker is open for the same lock, or the store has space for the
// existing locks only. The revision stays 0 if something changed meanwhile. If this server dies, the question ends with the lease of the inquiry.
func (relay *Relay) put(ctx context.Context, in *inquiry, q *question) error {
	key := prefix + q.document
	old, _, err := relay.store.Get(ctx, key)
	if err != nil {
		return err
	}
	free, ops := kv.Absent(key), []kv.Op(nil)
	if old.Found() {
		before, ok := decode(old)
		switch {
		case ok && before.Refused: // its asker finds it gone
			ops = relay.record(q.document, before, Refused)
		case ok && before.Token == q.ask.Token && !q.ask.repeats(before):
			return ErrBusy
		case ok && before.Token == q.ask.Token:
			ops = relay.record(q.document, before, Cancelled)
		}
		free = kv.Unchanged(old)
	} else if relay.store.ReservedForLeases() {
		return kv.ErrReserved // a question and its asker's place in the queue take space
	}
	if in.lease == nil {
		if in.lease, err = relay.store.Lease(ctx, askTTL); err != nil {
			return err
		}
	}
	ops = append(ops, kv.PutBound(key, q.ask.encode(), in.lease))
	result, err := relay.store.Commit(ctx, kv.Txn{If: []kv.Cond{free, q.held.NotEnded()}, Then: ops})
	if err == nil && result.Held {
		q.revision = result.Revision
	}
	return err
}

// released reports whether the lock of a question has ended.
func (relay *Relay) released(ctx context.Context, q question) bool {
	result, err := relay.store.Commit(ctx, kv.Txn{If: []kv.Cond{q.held.NotEnded()}})
	return err == nil && !result.Held
}
