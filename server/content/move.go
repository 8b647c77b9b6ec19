package content

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// MoveUnder gives a document's content and history another name, in one transaction. Both rights must allow it. The
// operations of both rights belong to the transaction. If a document already has the other name, its content and
// history become earlier generations of the moved document. MoveUnder fails with [ErrNotFound], with [ErrPrecondition] of expected, which checks the
// content that moves, and with the errors of the rights.
func (s *Store) MoveUnder(ctx context.Context, from, to string, source, target Right, expected Expected) error {
	m := move{Store: s, from: from, to: to, source: source, target: target, expected: expected}
	for {
		done, err := m.try(ctx)
		if err != nil || done {
			return err
		}
	}
}

type move struct {
	*Store
	from, to       string
	source, target Right
	expected       Expected
}

// document is the description of a document as it was read.
type document struct {
	description
	entry kv.Entry
}

func (s *Store) read(ctx context.Context, id string) (d document, err error) {
	if d.entry, _, err = s.KV.Get(ctx, prefix+id); err != nil {
		return d, err
	}
	d.entry.Key = prefix + id
	d.description, err = decode(d.entry)
	return d, err
}

// try tries once. It reports false if a document has changed meanwhile, or if try had to change one first.
func (m *move) try(ctx context.Context) (done bool, err error) {
	fence, err := m.fence(ctx)
	if err != nil {
		return false, err
	}
	moved, err := m.read(ctx, m.from)
	if err != nil {
		return false, err
	}
	if m.expected != nil {
		if err := m.expected(moved.info()); err != nil {
			return false, err
		}
	}
	if m.KV.Space().Full {
		return false, kv.ErrReserved
	}
	if moved.Blob == "" {
		return false, m.makeBlob(ctx)
	}
	replaced, err := m.read(ctx, m.to)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	for _, d := range []document{moved, replaced} {
		if len(d.Kept) > m.Keep-1 {
			return false, m.trim(ctx, fence, d)
		}
	}
	remember, unchanged, err := m.remember(ctx, m.from, moved.description, m.source, Save{})
	if err != nil {
		return false, err
	}
	fence = append(fence, unchanged, kv.ChangedAt(moved.entry.Key, moved.entry.Modified), kv.ChangedAt(replaced.entry.Key, replaced.entry.Modified))
	result, err := m.KV.Commit(ctx, kv.Txn{If: fence, Then: append(m.operations(moved, replaced), remember...)})
	if err != nil {
		m.remembered.Store(nil)
	}
	return result.Held, err
}

func (m *move) fence(ctx context.Context) ([]kv.Cond, error) {
	source, err := m.source.Fence(ctx)
	if err != nil {
		return nil, err
	}
	target, err := m.target.Fence(ctx)
	return slices.Concat(source, target), err
}

// makeBlob stores as a blob a content that a former version of the server put into the store.
func (m *move) makeBlob(ctx context.Context) error {
	data, info, err := m.Read(ctx, m.from)
	if err != nil {
		return err
	}
	right := m.source
	right.Also = nil
	same := func(before Info) error {
		if before.Generation != info.Generation {
			return ErrPrecondition
		}
		return nil
	}
	_, err = m.WriteUnder(ctx, m.from, right, Save{}, same, data)
	return err
}

// trim drops the generations above a limit that is lower than before. Otherwise the transaction of the move could have too many
// operations.
func (s *Store) trim(ctx context.Context, fence []kv.Cond, d document) error {
	ops := s.drop(&d.description)
	ops = append(ops, kv.Put(d.entry.Key, d.encode()))
	_, err := s.KV.Commit(ctx, kv.Txn{If: append(fence, kv.ChangedAt(d.entry.Key, d.entry.Modified)), Then: ops})
	return err
}

// drop removes the generations above the limit from a description, and returns the operations for it.
func (s *Store) drop(d *description) (ops []kv.Op) {
	for len(d.Kept) > s.Keep-1 {
		last := d.Kept[len(d.Kept)-1]
		d.Kept = d.Kept[:len(d.Kept)-1]
		ops = append(ops, kv.Delete(blobPrefix+last.Blob), kv.Put(garbagePrefix+last.Blob, nil))
	}
	return ops
}

// operations returns the operations of the move.
func (m *move) operations(moved, replaced document) []kv.Op {
	d := moved.description
	d.Token, d.Draft, d.Number, d.Order = m.target.Token, "", 0, 0 // no client has saved it under the other name
	d.Kept = slices.Clone(d.Kept)
	ops := []kv.Op{kv.Delete(moved.entry.Key)}
	if moved.By != "" {
		ops = append(ops, kv.Delete(MadeKey(moved.By, m.from)))
	}
	if replaced.entry.Found() {
		d.By, d.Saved = replaced.By, time.Now().UnixMilli() // otherwise a cache could take it for older than the replaced one
		if replaced.Blob != "" {
			d.Kept = append(d.Kept, kept{replaced.Save, replaced.Blob})
		}
		d.Kept = append(d.Kept, replaced.Kept...)
		slices.SortStableFunc(d.Kept, func(a, b kept) int { return cmp.Compare(b.Save, a.Save) }) // a save name begins with its time
	} else if d.By != "" {
		ops = append(ops, kv.Put(MadeKey(d.By, m.to), nil))
	}
	if replaced.Chunks > 0 {
		ops = append(ops, kv.DeleteUnder(chunkPrefix+m.to+"/"))
	}
	ops = append(ops, m.drop(&d)...)
	generation := d
	generation.Kept = nil
	ops = append(ops, kv.Put(prefix+m.to, d.encode()), kv.Put(blobPrefix+d.Blob, generation.encode()))
	return slices.Concat(m.Record(m.to, d.info()), ops, m.Forget(m.from), m.source.Also, m.target.Also)
}
