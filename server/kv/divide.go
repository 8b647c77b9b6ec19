package kv

import (
	"bytes"
	"iter"
	"slices"
)

const (
	// maxShared is the maximum size in bytes of a transaction that shares an etcd transaction with others. A larger one
	// would delay them.
	maxShared = 64 << 10
	// perKey is the size that a condition or an operation adds to a request, apart from its keys and its value.
	perKey = 32
)

// ops yields the operations of both lists.
func (t Txn) ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for _, list := range [2][]Op{t.Then, t.Else} {
			for _, o := range list {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// combines reports whether a transaction may share an etcd transaction. One that only reads does not: alone it needs
// no entry in the log of the cluster. One that deletes a range does not, because its keys are unknown.
func (t Txn) combines() bool {
	changes := false
	for o := range t.ops() {
		if len(o.request.GetRequestDeleteRange().GetRangeEnd()) > 0 {
			return false
		}
		changes = changes || !o.reads()
	}
	return changes && t.size() <= maxShared
}

// puts reports whether the transaction may set a key.
func (t Txn) puts() bool {
	return slices.ContainsFunc(t.Then, Op.Puts) || slices.ContainsFunc(t.Else, Op.Puts)
}

// size is a little more than the size of the transaction's request in bytes.
func (t Txn) size() (n int) {
	for _, c := range t.If {
		n += perKey + len(c.compare.Key) + len(c.compare.RangeEnd) + len(c.compare.GetValue())
	}
	for o := range t.ops() {
		first, end := o.span()
		n += perKey + len(first) + len(end) + len(o.request.GetRequestPut().GetValue())
	}
	return n
}

// width is the number of entries of the longest of the transaction's lists.
func (t Txn) width() int { return max(len(t.If), len(t.Then), len(t.Else)) }

// divide groups parts into transactions that etcd accepts. A part that depends on another one goes alone.
func divide(parts []*part) (batches [][]*part) {
	for len(parts) > 0 {
		n, width, size := 0, 0, 0
		for _, p := range parts {
			// For etcd, a list of transactions is as long as the list itself and the longest list inside it.
			width, size = max(width, p.width()), size+perKey+p.size()
			if n > 0 && (n+1+width > MaxOps || size > MaxRequest) {
				break
			}
			n++
		}
		together, alone := independent(parts[:n])
		batches = append(batches, together)
		for _, p := range alone {
			batches = append(batches, []*part{p})
		}
		parts = parts[n:]
	}
	return batches
}

// span is a key, or the keys from first to end, that a part reads or writes.
type span struct {
	first, end []byte
	part       int
}

// independent separates the parts of which no two write the same key and none reads a key that another one writes. The
// first part is always among them.
func independent(parts []*part) (together, alone []*part) {
	dependent, writes := make([]bool, len(parts)), writesOf(parts)
	for i := 1; i < len(writes); i++ {
		if writes[i].part != writes[i-1].part && bytes.Equal(writes[i].first, writes[i-1].first) {
			dependent[writes[i].part] = true
		}
	}
	for i, p := range parts {
		for _, c := range p.If {
			span{c.compare.Key, c.compare.RangeEnd, i}.mark(writes, dependent)
		}
		for o := range p.ops() {
			if o.reads() {
				first, end := o.span()
				span{first, end, i}.mark(writes, dependent)
			}
		}
	}
	for i, p := range parts {
		if dependent[i] {
			alone = append(alone, p)
		} else {
			together = append(together, p)
		}
	}
	return together, alone
}

// writesOf returns the keys that parts write, in order.
func writesOf(parts []*part) []span {
	n := 0
	for _, p := range parts {
		n += len(p.Then) + 1
	}
	writes := make([]span, 0, n)
	for i, p := range parts {
		if p.Apart != "" {
			writes = append(writes, span{first: []byte("\x00" + p.Apart), part: i}) // no key begins like this
		}
		for o := range p.ops() {
			if !o.reads() {
				first, end := o.span()
				writes = append(writes, span{first, end, i})
			}
		}
	}
	slices.SortFunc(writes, func(a, b span) int {
		if order := bytes.Compare(a.first, b.first); order != 0 {
			return order
		}
		return a.part - b.part
	})
	return writes
}

// mark marks the later part of each pair of which one reads what the other one writes. The writes are sorted.
func (s span) mark(writes []span, dependent []bool) {
	from, _ := slices.BinarySearchFunc(writes, s.first, func(w span, key []byte) int { return bytes.Compare(w.first, key) })
	for _, w := range writes[from:] {
		if !s.contains(w.first) {
			return
		}
		if w.part != s.part {
			dependent[max(w.part, s.part)] = true
		}
	}
}

// contains reports whether the span contains a key that is not before its first one. An end of one zero byte means no end.
func (s span) contains(key []byte) bool {
	if len(s.end) == 0 {
		return bytes.Equal(key, s.first)
	}
	return string(s.end) == "\x00" || bytes.Compare(key, s.end) < 0
}
