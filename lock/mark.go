package lock

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// unwrittenName is the name of the mark of a lease that has no record, although leases of its kind have one. It contains the TTL.
const unwrittenName = " without a record "

// unwritten returns the TTL of the lease that a mark is for. ok is false if the name is not that of a mark for the resource.
func unwritten(resource, name string) (ttl time.Duration, ok bool) {
	text, ok := strings.CutPrefix(name, resource+unwrittenName)
	if !ok {
		return 0, false
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.Duration(ms) * time.Millisecond, err == nil && ms > 0
}

// mark shows waiters that this lease could write no record, by a lock of its own. A record of an earlier lease may still be there: without the
// mark, a waiter that finds it expired could steal from a holder that is busy for a moment. If the mark is refused, the lease goes on without it.
func (h *heldLease) mark(ctx context.Context) {
	l := h.target.backend.beneath()
	records, ok := l.Records.(*fallbackRecords)
	if !ok || !h.target.whole || !records.serves(h.record(h.lease)) {
		return
	}
	name := l.Name() + unwrittenName + strconv.FormatInt(h.lease.TTL.Milliseconds(), 10)
	grant, err := bounded(ctx, claimLimit, func(ctx context.Context) (Grant, error) {
		return l.Locker.Request(ctx, Request{Wants: []Want{{name, Shared}}, IfAvailable: true})
	})
	if err == nil {
		context.AfterFunc(h.life, func() { h.m.giveBack(grant) })
	}
}
