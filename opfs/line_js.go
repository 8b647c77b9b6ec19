//go:build js && wasm

package opfs

import (
	"context"
	"slices"
)

// line is the order in which a client began its operations. The first position runs. Operations that follow each other share a position,
// because one step can make them all; a query has a position of its own. It needs no mutex, see requests.
type line struct{ positions []*position }

// position is a place in the line.
type position struct {
	begin      func() // called when it becomes the first
	shared     bool   // by operations
	operations []*operation
	deciding   []*operation // those of the present attempt
	end        func()       // ends the attempt
	gone       []*operation // those whose callers have given up since the last attempt
}

// take waits for a position of its own; give ends it.
func (l *line) take(ctx context.Context) bool {
	come := make(chan struct{})
	p := &position{begin: func() { close(come) }}
	l.enter(p)
	select {
	case <-come:
		return true
	case <-ctx.Done():
		l.leave(p)
		return false
	}
}

func (l *line) give() { l.leave(l.positions[0]) }

func (l *line) enter(p *position) {
	l.positions = append(l.positions, p)
	if len(l.positions) == 1 {
		p.begin()
	}
}

func (l *line) leave(p *position) {
	i := slices.Index(l.positions, p)
	l.positions = slices.Delete(l.positions, i, i+1)
	if i == 0 && len(l.positions) > 0 {
		l.positions[0].begin()
	}
}

// join puts an operation behind all others. run is called for its position when that is the first one.
func (l *line) join(o *operation, run func(*position)) *position {
	if n := len(l.positions); n > 0 && l.positions[n-1].shared {
		p := l.positions[n-1]
		p.operations = append(p.operations, o)
		return p
	}
	p := &position{shared: true, operations: []*operation{o}}
	p.begin = func() { go run(p) }
	l.enter(p)
	return p
}

// next returns the operations of the next step.
func (p *position) next() []*operation {
	return slices.Clone(p.operations[:min(len(p.operations), maxOperations)])
}

// abandon removes an operation whose caller has given up. The present attempt goes on while the caller of another operation waits for it: its write
// may have begun, and the others would lose their places if it were made again. The operation may take effect then.
func (p *position) abandon(o *operation) {
	p.remove(o)
	p.gone = append(p.gone, o)
	waits := func(other *operation) bool { return slices.Contains(p.operations, other) }
	if slices.Contains(p.deciding, o) && !slices.ContainsFunc(p.deciding, waits) {
		p.end()
	}
}

func (p *position) remove(gone ...*operation) {
	p.operations = slices.DeleteFunc(p.operations, func(o *operation) bool { return slices.Contains(gone, o) })
}
