package locks

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// At reads the lease that prevents an exclusive lock on the path, the oldest if there are several. It returns the
// revision of the read. Without such a lease it returns the zero lease.
func (t *Table) At(ctx context.Context, p Path) (Lease, int64, error) {
	list, revision, err := t.Blocking(ctx, p)
	if err != nil || len(list) == 0 {
		return Lease{}, revision, err
	}
	return list[0], revision, nil
}

// Blocking reads the leases that prevent an exclusive lock on the path, the oldest first, at most [maxNamed]. It returns the revision of the
// read.
func (t *Table) Blocking(ctx context.Context, p Path) ([]Lease, int64, error) {
	var w preconditions
	asked := claim{Paths: []Path{p}, Mode: Exclusive, Slots: 1}
	w.clear(asked)
	result, err := t.store.Commit(ctx, kv.Txn{Then: append(w.reads, kv.Read(asked.beatKey()))})
	if err != nil {
		return nil, 0, err
	}
	last := len(result.Reads) - 1
	alive, err := t.alive(ctx, readConflicts(result.Reads[:last]).claims)
	if err != nil || len(alive) == 0 {
		return nil, result.Revision, err
	}
	list := t.name(alive)
	if beats := result.Reads[last]; len(beats) == 1 && slices.Equal(list[0].Paths[0], p) {
		if expires, ok := decodeBeat(beats[0]); ok {
			list[0].ExpiresAt = expires
		}
	}
	return list, result.Revision, nil
}

// alive returns the claims that have not expired.
func (t *Table) alive(ctx context.Context, claims []storedLease) ([]storedLease, error) {
	var list []storedLease
	for _, s := range claims {
		ended, err := t.endIfDue(ctx, s)
		if err != nil {
			return nil, err
		}
		if !ended {
			list = append(list, s)
		}
	}
	return list, nil
}

// HolderOf returns the id of a lease's holder, or "" if the lease has ended.
func (t *Table) HolderOf(ctx context.Context, id string) (string, error) {
	s, err := t.byID(ctx, id, "")
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	if errors.Is(err, ErrNotHolder) {
		err = nil
	}
	return s.Holder, err
}

// HolderOfTicket returns the first owner that has a lease or a place in the queue under this ticket, or "". A lease that excludes all others
// counts only if this server has seen it; the place itself tells who holds it. HolderOfTicket reads many owners at once: a client may have
// hundreds of ids.
func (t *Table) HolderOfTicket(ctx context.Context, name string, owners []string) (string, error) {
	for some := range slices.Chunk(owners, kv.MaxOps/2) {
		var reads []kv.Op
		for _, owner := range some {
			reads = append(reads, kv.Read(stubKey(owner, name)), kv.Read(askedPrefix+askedKey(claim{Holder: owner, Ticket: name})))
		}
		result, err := t.store.Commit(ctx, kv.Txn{Then: reads})
		if err != nil {
			return "", err
		}
		for i, owner := range some {
			if len(result.Reads[2*i])+len(result.Reads[2*i+1]) > 0 || t.mirror.grantedTo(owner, name) {
				return owner, nil
			}
		}
	}
	return "", nil
}

// grantedTo reports whether an owner has a lease under a ticket, as far as this server knows.
func (m *mirror) grantedTo(owner, ticket string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked[askedKey(claim{Holder: owner, Ticket: ticket})]) > 0
}
