package content

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// commitWithin limits the time from a blob's name, which contains its time, to the transaction that names the blob.
// It is much less than OrphanAge, so Sweep deletes a blob that waits for its transaction only if this process was suspended.
const commitWithin = time.Minute

// Expected checks the content that the writer is about to replace. It returns [ErrPrecondition] for an unexpected
// one. If there is no content, the [Info] has no ETag. A nil Expected accepts any content.
type Expected func(before Info) error

// Writer is the client that writes. Holder holds the lock. Maker is the user, or a session without a user, and
// may create Documents documents; 0 is [Config.MaxDocuments].
type Writer struct {
	Holder, Maker string
	Documents     int
}

// Write replaces a document's content under the lock with the given token. It fails with [locks.ErrStaleToken] if
// that lock is gone or another one replaced it, with [locks.ErrNotHolder] if it never belonged to the holder, with
// [ErrStaleSave] if a later save is stored, and with [blobs.ErrFull] or [kv.ErrReserved] if there is no space. If the same save is already
// stored, Write changes nothing and returns its description.
func (s *Store) Write(ctx context.Context, document string, by Writer, token int64, save Save, expected Expected, data []byte) (Info, error) {
	return s.WriteUnder(ctx, document, s.documentRight(document, by, token), save, expected, data)
}

// Right is the permission of a lock to change a document.
type Right struct {
	By    Writer
	Token int64
	// Fence returns the conditions under which the change commits. Each try calls it, and its error ends the change.
	Fence func(context.Context) ([]kv.Cond, error)
	// Also are further operations of the same transaction.
	Also []kv.Op
	// OneChange means that the lock is for this change only, so no earlier save under it can be late.
	OneChange bool
}

// documentRight is the right of the document's own exclusive lock.
func (s *Store) documentRight(document string, by Writer, token int64) Right {
	return Right{By: by, Token: token, Fence: func(ctx context.Context) ([]kv.Cond, error) {
		fence, err := s.Locks.Fence(ctx, locks.Document(document), by.Holder, token)
		return []kv.Cond{fence}, err
	}}
}

// WriteUnder is Write under any lock that allows it. Besides the errors of Write it fails with those of the right.
func (s *Store) WriteUnder(ctx context.Context, document string, right Right, save Save, expected Expected, data []byte) (Info, error) {
	w := write{Store: s, Right: right, document: document, save: save, expected: expected, data: data}
	for {
		fence, err := right.Fence(ctx)
		if err != nil {
			return Info{}, w.giveUp(err)
		}
		info, done, err := w.try(ctx, fence)
		if err != nil {
			return Info{}, w.giveUp(err)
		}
		if done {
			if info.Generation != w.d.Save {
				_ = w.giveUp(nil) // the same save came twice at once, and the other one is stored
			}
			return info, nil
		}
	}
}

// write is a write that may need several tries, with one blob.
type write struct {
	*Store
	Right
	document string
	save     Save
	expected Expected
	data     []byte
	d        description // of the existing blob; without a blob, its Blob is empty
	named    bool        // a transaction has named the blob, or may have
}

// giveUp removes the blob of a failed write. If the blob store does not answer, the blob becomes garbage.
func (w *write) giveUp(err error) error {
	if w.d.Blob == "" {
		return err
	}
	if w.named {
		w.needsSweep.Store(true)
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitWithin)
	defer cancel()
	if w.Blobs.Delete(ctx, w.d.Blob) != nil {
		_, failed := w.KV.Commit(ctx, kv.Txn{
			If:   []kv.Cond{kv.Absent(blobPrefix + w.d.Blob)},
			Then: []kv.Op{kv.Put(garbagePrefix+w.d.Blob, nil)},
		})
		if failed != nil {
			w.needsSweep.Store(true)
		}
	}
	return err
}

// try tries once. It is not done if something other than the lock has changed meanwhile.
func (w *write) try(ctx context.Context, fence []kv.Cond) (Info, bool, error) {
	old, _, err := w.KV.Get(ctx, prefix+w.document)
	if err != nil {
		return Info{}, false, err
	}
	before, err := decode(old)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Info{}, false, err
	}
	tag, digest := etag(w.data)
	d := description{ETag: tag, By: before.By, Token: w.Token, Size: len(w.data), Draft: w.save.Draft, Number: w.save.Number, Order: w.save.Order}
	conditions := append(fence, kv.ChangedAt(prefix+w.document, old.Modified))
	if !old.Found() {
		unchanged, err := w.followDeletion(ctx, &d)
		if err != nil {
			return Info{}, false, err
		}
		conditions = append(conditions, unchanged)
	} else if stored, err := d.follow(before); stored || err != nil {
		if err == nil && d.Order > before.Order {
			before.Order = d.Order // writes that were sent in between are refused from now on
			result, err := w.KV.Commit(ctx, kv.Txn{If: conditions, Then: []kv.Op{kv.Put(prefix+w.document, before.encode())}})
			return before.info(), result.Held, err
		}
		return before.info(), stored, err
	}
	if w.expected != nil {
		if err := w.expected(before.info()); err != nil {
			return Info{}, false, err
		}
	}
	if err := w.mayMake(ctx, old); err != nil {
		return Info{}, false, err
	}
	if err := w.put(ctx, digest); err != nil {
		return Info{}, false, err
	}
	d.Save, d.Blob, d.Saved = w.d.Save, w.d.Blob, w.d.Saved
	then := slices.Concat(w.Record(w.document, d.info()), w.replace(&d, old, before), w.Also)
	held, err := w.commit(ctx, append(conditions, kv.Absent(sweptPrefix+d.Blob)), then, old)
	return d.info(), held, err
}

// commit commits the names of a save, if the conditions hold. old is the description that the save replaces.
func (w *write) commit(ctx context.Context, conditions []kv.Cond, then []kv.Op, old kv.Entry) (held bool, err error) {
	w.named = true
	result, err := w.KV.Commit(ctx, kv.Txn{If: conditions, Then: then})
	held = result.Held
	if errors.Is(err, kv.ErrFull) {
		held, err = w.afterFull(ctx, old, err)
	}
	w.named = held || err != nil && !errors.Is(err, kv.ErrReserved)
	switch {
	case err != nil:
	case held:
		err = w.restore()
	default:
		err = w.forgetSwept(ctx)
	}
	return held, err
}

// afterFull reports whether the store carried out a transaction for which it had no space, as etcd does with the first one. If it certainly
// did not, the error is [kv.ErrReserved].
func (w *write) afterFull(ctx context.Context, old kv.Entry, full error) (held bool, err error) {
	named := blobPrefix + w.d.Blob
	unchanged := []kv.Cond{kv.ChangedAt(prefix+w.document, old.Modified), kv.Absent(named)} // a document that has been moved has the blob
	result, err := w.KV.Commit(ctx, kv.Txn{If: unchanged, Else: []kv.Op{kv.Read(named)}})
	switch {
	case err != nil:
		return false, full
	case result.Held:
		return false, kv.ErrReserved
	case len(result.Reads[0]) > 0:
		return true, nil
	}
	return false, full // a later change may have dropped what this one saved
}

// followDeletion fails with [ErrStaleSave] if d is older than a deletion under the same token. It returns the condition that this
// stays so.
func (w *write) followDeletion(ctx context.Context, d *description) (kv.Cond, error) {
	deleted, entry, err := w.readDeleted(ctx, w.document)
	if err == nil {
		_, err = d.follow(deleted)
	}
	return kv.ChangedAt(deletedPrefix+w.document, entry.Modified), err
}

// mayMake returns an error if the store has no space for contents, or if the maker may not create another document.
func (w *write) mayMake(ctx context.Context, old kv.Entry) error {
	if w.KV.Space().Full {
		return kv.ErrReserved
	}
	if old.Found() {
		return nil
	}
	return w.MayMake(ctx, w.By)
}

// MayMake returns [ErrTooMany] if a writer has made as many documents as it may. Each is a key that [Made] names.
func (s *Store) MayMake(ctx context.Context, by Writer) error { return s.MayMakeMore(ctx, by, 1, 0) }

// MayMakeMore is MayMake for a number of documents, before fewer of the writer's go.
func (s *Store) MayMakeMore(ctx context.Context, by Writer, more, fewer int64) error {
	limit := cmp.Or(by.Documents, s.MaxDocuments)
	if limit == 0 {
		return nil
	}
	made, err := s.KV.Count(ctx, MadeKey(by.Maker, ""))
	if err == nil && made-fewer+more > int64(limit) {
		err = ErrTooMany
	}
	return err
}

// HasSpace reports whether there is space for contents. Nobody knows that of a bucket or another disk before the contents are there.
func (s *Store) HasSpace(bytes int64) bool { return s.Apart || s.KV.HasSpace(bytes) }

// put writes the blob, unless a recent try has already written it. If ctx ends after the write has begun, the write goes on, so that giveUp
// knows its outcome.
func (w *write) put(ctx context.Context, digest string) error {
	now := time.Now()
	if w.d.Blob != "" && now.Sub(time.UnixMilli(w.d.Saved)) < commitWithin {
		return nil
	}
	if w.d.Blob != "" {
		_ = w.giveUp(nil)
	}
	end, ok := w.KV.TakeSpace(int64(len(w.data)))
	if !ok {
		w.d = description{}
		return blobs.ErrFull
	}
	defer end()
	save := newSave(now)
	w.d = description{Save: save, Blob: digest + "-" + save, Saved: now.UnixMilli()}
	err := w.Blobs.Put(ctx, w.d.Blob, w.data)
	switch {
	case err == nil:
		return context.Cause(ctx) // the transaction would have an unknown outcome
	case errors.Is(err, context.Cause(ctx)):
		w.d = description{} // the write has not begun
	case !errors.Is(err, blobs.ErrFull):
		w.needsSweep.Store(true) // a bucket may carry out the write after giveUp has deleted the blob
	}
	return err
}

// restore writes the blob again if it is gone after the transaction that names it. This process may have been suspended for so
// long that Sweep of another server took the blob for one that a crash has left, and that its mark is gone too.
func (w *write) restore() error {
	if time.Since(time.UnixMilli(w.d.Saved)) < commitWithin {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitWithin)
	defer cancel()
	r, err := w.Blobs.Open(ctx, w.d.Blob)
	switch {
	case err == nil:
		return r.Close()
	case errors.Is(err, blobs.ErrNotFound):
		return w.Blobs.Put(ctx, w.d.Blob, w.data)
	}
	return err
}

// forgetSwept makes the next try write a blob of its own if Sweep of another server has marked the present one.
func (w *write) forgetSwept(ctx context.Context) error {
	swept, _, err := w.KV.Get(ctx, sweptPrefix+w.d.Blob)
	if swept.Found() {
		w.d = description{}
	}
	return err
}

// replace returns the operations that make d the present generation and drop the generations above the limit.
func (w *write) replace(d *description, old kv.Entry, before description) []kv.Op {
	if before.Blob != "" {
		d.Kept = append([]kept{{before.Save, before.Blob}}, before.Kept...)
	}
	var ops []kv.Op
	if !old.Found() {
		d.By = w.By.Maker
		ops = append(ops, kv.Put(MadeKey(d.By, w.document), nil), ForgetDeletion(w.document))
	}
	ops = append(ops, w.drop(d)...)
	if before.Chunks > 0 {
		ops = append(ops, kv.DeleteUnder(chunkPrefix+w.document+"/"))
	}
	generation := *d
	generation.Kept = nil
	return append(ops, kv.Put(prefix+w.document, d.encode()), kv.Put(blobPrefix+d.Blob, generation.encode()))
}

// Delete removes a document's content and history under the lock with the given token. It fails like Write. Writes under the
// token that were sent before it stay refused; save is its place among them.
func (s *Store) Delete(ctx context.Context, document, holder string, token int64, save Save, expected Expected) error {
	return s.DeleteUnder(ctx, document, s.documentRight(document, Writer{Holder: holder}, token), save, expected)
}

// Erase is Delete for an administrator, without a lock. A holder may save again afterwards.
func (s *Store) Erase(ctx context.Context, document string, expected Expected) error {
	none := func(context.Context) ([]kv.Cond, error) { return nil, nil }
	return s.DeleteUnder(ctx, document, Right{Fence: none}, Save{}, expected)
}

// DeleteUnder is Delete under any lock that allows it.
func (s *Store) DeleteUnder(ctx context.Context, document string, right Right, save Save, expected Expected) error {
	for {
		conditions, err := right.Fence(ctx)
		if err != nil {
			return err
		}
		old, _, err := s.KV.Get(ctx, prefix+document)
		if err != nil {
			return err
		}
		before, err := decode(old)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if expected != nil && old.Found() {
			if err := expected(before.info()); err != nil {
				return err
			}
		}
		remember, unchanged, err := s.remember(ctx, document, before, right, save)
		if err != nil {
			return err
		}
		ops := []kv.Op{kv.Delete(prefix + document), kv.DeleteUnder(chunkPrefix + document + "/")}
		if before.Blob != "" {
			before.Kept = append(before.Kept, kept{before.Save, before.Blob})
		}
		for _, k := range before.Kept {
			ops = append(ops, kv.Delete(blobPrefix+k.Blob), kv.Put(garbagePrefix+k.Blob, nil))
		}
		if before.By != "" {
			ops = append(ops, kv.Delete(MadeKey(before.By, document)))
		}
		ops = slices.Concat(ops, remember, s.Forget(document), right.Also)
		result, err := s.KV.Commit(ctx, kv.Txn{If: append(conditions, unchanged, kv.ChangedAt(prefix+document, old.Modified)), Then: ops})
		if err != nil {
			s.remembered.Store(nil)
		}
		if err != nil || result.Held {
			return err
		}
	}
}

// MadeKey is the key that counts a document among those that it has made.
func MadeKey(maker, document string) string { return madePrefix + maker + "/" + document }

// newSave returns a name for a save that contains its time. Later names sort after earlier ones.
func newSave(now time.Time) string {
	return strconv.FormatInt(now.UnixMilli(), 36) + "-" + rand.Text()[:10]
}
