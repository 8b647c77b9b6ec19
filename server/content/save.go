package content

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// ErrStaleSave means that a later save or deletion under the same token has happened.
var ErrStaleSave = errors.New("a later save of this lock is stored")

// Save identifies a save. The zero value identifies none.
type Save struct {
	// Draft names the text that the client edits, and Number its snapshot. Later snapshots of a draft have higher
	// numbers.
	Draft  string
	Number int64
	// Order counts the writes that the client has sent under one token; 0 means unknown. It orders writes of
	// different drafts.
	Order int64
}

var draftPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseSave reads a draft and a number in the format of String.
func ParseSave(text string) (Save, bool) {
	draft, digits, _ := strings.Cut(text, "/")
	number, err := strconv.ParseInt(digits, 10, 64)
	return Save{Draft: draft, Number: number}, err == nil && number >= 0 && draftPattern.MatchString(draft)
}

// String formats the draft and the number. It is empty without a draft.
func (s Save) String() string {
	if s.Draft == "" {
		return ""
	}
	return s.Draft + "/" + strconv.FormatInt(s.Number, 10)
}

// ForgetDeletion returns the operation that forgets a deletion under a document's lock, for the transaction that ends the lock.
func ForgetDeletion(document string) kv.Op { return kv.Delete(deletedPrefix + document) }

// readDeleted reads what is remembered of a deletion; the zero description is nothing.
func (s *Store) readDeleted(ctx context.Context, document string) (d description, entry kv.Entry, err error) {
	entry, _, err = s.KV.Get(ctx, deletedPrefix+document)
	if err == nil && entry.Found() {
		d, err = decode(entry)
	}
	return d, entry, err
}

// remember returns the operation of a deletion, or of a move away, that keeps the order of the saves under its token, and the condition that
// what is remembered already does not change. Without an order it only keeps out the saves whose transactions are late. It fails with
// [ErrStaleSave] if the deletion is older than the last save.
func (s *Store) remember(ctx context.Context, document string, before description, by Right, save Save) ([]kv.Op, kv.Cond, error) {
	last, entry, err := s.readDeleted(ctx, document)
	unchanged := kv.ChangedAt(deletedPrefix+document, entry.Modified)
	stored := before.Token == by.Token && before.ETag != ""
	switch {
	case err != nil || by.OneChange:
		return nil, unchanged, err
	case by.Token == 0:
		ops, err := s.rememberErased(ctx, document, before)
		return ops, unchanged, err
	case stored:
		last = before
	case last.Token != by.Token:
		last = description{}
	}
	d := description{Token: by.Token, Draft: save.Draft, Number: save.Number, Order: save.Order}
	repeated, err := d.follow(last)
	if err != nil && stored {
		return nil, unchanged, err
	}
	if repeated || err != nil || d.Draft == "" {
		d.Draft, d.Number, d.Order = last.Draft, last.Number, max(d.Order, last.Order)
	}
	if d.Draft == "" && d.Order == 0 {
		ops, err := s.rememberFor(ctx, document, d)
		return ops, unchanged, err
	}
	return []kv.Op{kv.Put(deletedPrefix+document, d.encode())}, unchanged, nil
}

// rememberFor returns the operation that remembers a deletion for [OrphanAge] at least. Its lock may be one on a place, whose end removes nothing.
func (s *Store) rememberFor(ctx context.Context, document string, d description) ([]kv.Op, error) {
	now, shared := time.Now(), s.remembered.Load()
	if shared == nil || !now.Before(shared.until) || shared.keys.Add(1) > sharedKeys {
		lease, err := s.KV.Countdown(ctx, OrphanAge+OrphanAge/2)
		if err != nil {
			return nil, err
		}
		shared = &remembered{lease: lease, until: now.Add(OrphanAge / 2)}
		s.remembered.Store(shared)
	}
	return []kv.Op{kv.PutBound(deletedPrefix+document, d.encode(), shared.lease)}, nil
}

// remembered is the lease of what deletions remember. Those until a time share it.
type remembered struct {
	lease *kv.Lease
	until time.Time
	keys  atomic.Int64
}

// sharedKeys is the number of keys that share a lease. etcd deletes all of them in one step, during which it does nothing else.
const sharedKeys = 1000

// rememberErased is remember for an administrator, who deletes under no lock. While there is a lock, older saves under the token of the last one
// stay refused, and its holder may repeat that one. A late save may also be that of another lock, because several programs share one. The lock
// may end meanwhile, so a lease removes what is remembered.
func (s *Store) rememberErased(ctx context.Context, document string, before description) ([]kv.Op, error) {
	if before.ETag == "" {
		return nil, nil
	}
	lock, _, err := s.Locks.At(ctx, locks.Document(document))
	if err != nil || lock.Token == 0 {
		return nil, err
	}
	return s.rememberFor(ctx, document, description{
		ETag: before.ETag, Size: before.Size, Token: before.Token, Draft: before.Draft, Number: before.Number, Order: before.Order})
}

// follow reports whether d is the same save as before, which is stored. It fails with [ErrStaleSave] if d is older.
func (d *description) follow(before description) (stored bool, err error) {
	if d.Token != before.Token {
		return false, nil
	}
	sameDraft := d.Draft != "" && d.Draft == before.Draft
	same := d.ETag == before.ETag && d.Size == before.Size
	switch {
	case d.Order != 0 && d.Order < before.Order, sameDraft && d.Number < before.Number:
		return false, ErrStaleSave
	case d.Order != 0 && d.Order == before.Order, sameDraft && d.Number == before.Number:
		if !same {
			return false, ErrStaleSave // one number identifies one text
		}
		return true, nil
	case d.Order == 0:
		d.Order = before.Order
	}
	return false, nil
}
