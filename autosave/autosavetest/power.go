package autosavetest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Power is an [autosave.Files] that remembers which of its writes were flushed, so that a test can cut the power at any
// moment. A flushed write stays. Of all others any part may be lost, in any order, and a write may be torn, as SQLite's
// crash tests assume of a disk.
type Power struct {
	// Hasty makes Save flush nothing before the end: a fault that a test of the store must find.
	Hasty bool

	mu    sync.Mutex
	disk  *Disk
	steps []powerStep
}

// powerStep is one change, which a loss of power keeps or drops independently of others.
type powerStep struct {
	path string
	kind powerKind
	data []byte // of a write
	at   int
}

type powerKind int

const (
	powerMake powerKind = iota
	powerWrite
	powerFlush
	powerRemove
)

// NewPower returns empty files.
func NewPower() *Power { return &Power{disk: NewDisk()} }

// Steps returns the number of changes so far.
func (p *Power) Steps() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.steps)
}

func (p *Power) step(s powerStep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, s)
	s.apply(p.disk.files, 1)
}

// apply changes the files. part says how much of a write is kept: nothing, all, its first half, or its length alone.
func (s powerStep) apply(files map[string][]byte, part int) {
	content, there := files[s.path]
	switch {
	case part == 0 || s.kind == powerFlush:
	case s.kind == powerRemove:
		delete(files, s.path)
	case s.kind == powerMake && !there:
		files[s.path] = nil
	case s.kind == powerWrite:
		data := s.data
		switch part {
		case 2:
			data = data[:len(data)/2]
		case 3:
			data = make([]byte, len(data))
		}
		content = append(slices.Clone(content), make([]byte, max(0, s.at+len(data)-len(content)))...)
		copy(content[s.at:], data)
		files[s.path] = content
	}
}

// parts returns the number of states in which an unflushed step may be left.
func (s powerStep) parts() int {
	switch s.kind {
	case powerWrite:
		return 4
	case powerFlush:
		return 1
	}
	return 2
}

// Pending returns, for a loss of power after so many changes, the number of states in which each unsafe change may be
// left.
func (p *Power) Pending(steps int) (parts []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range steps {
		if !p.safe(i, steps) {
			parts = append(parts, p.steps[i].parts())
		}
	}
	return parts
}

// settled is the number of later removals after which one is safe: each commit since has flushed something.
const settled = 6

func (p *Power) safe(i, steps int) bool {
	s := p.steps[i]
	later := p.steps[i+1 : steps]
	if s.kind == powerRemove {
		return len(slices.DeleteFunc(slices.Clone(later), func(o powerStep) bool { return o.kind != powerRemove })) >= settled
	}
	return s.kind == powerFlush || slices.ContainsFunc(later, func(o powerStep) bool { return o.kind == powerFlush && o.path == s.path })
}

// Cut returns the storage after a loss of power that comes after so many changes. parts says how much of each pending
// change is kept, from 0 to the number that Pending returns.
func (p *Power) Cut(steps int, parts []int) *Disk {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := NewDisk()
	for i := range steps {
		if p.safe(i, steps) {
			p.steps[i].apply(d.files, 1)
			continue
		}
		p.steps[i].apply(d.files, parts[0])
		parts = parts[1:]
	}
	return d
}

// List implements [autosave.Files].
func (p *Power) List(ctx context.Context, folder string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disk.Stepped(nil).List(ctx, folder)
}

// Read implements [autosave.Files].
func (p *Power) Read(ctx context.Context, folder, name string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disk.Stepped(nil).Read(ctx, folder, name)
}

// Write implements [autosave.Files].
func (p *Power) Write(_ context.Context, folder, name string, content []byte) error {
	path := folder + "/" + name
	p.step(powerStep{path: path, kind: powerMake})
	p.step(powerStep{path: path, kind: powerWrite, data: content})
	p.step(powerStep{path: path, kind: powerFlush})
	return nil
}

// Remove implements [autosave.Files].
func (p *Power) Remove(ctx context.Context, folder, name string) error {
	if _, err := p.Read(ctx, folder, name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p.step(powerStep{path: folder + "/" + name, kind: powerRemove})
	return nil
}

// Preopen implements [autosave.Files].
func (p *Power) Preopen(name, index string) {
	p.step(powerStep{path: autosave.FolderHistory + "/" + name, kind: powerMake})
	p.step(powerStep{path: autosave.FolderIndex + "/" + index, kind: powerMake})
}

// Save implements [autosave.Files] with the writes of savewriter.js.
func (p *Power) Save(ctx context.Context, s autosave.Saving) ([]string, error) {
	p.Preopen(s.Name, s.Index)
	before, err := p.List(ctx, autosave.FolderIndex)
	if err != nil {
		return nil, err
	}
	content, seal, sum, err := taken(ctx, s)
	if err != nil {
		return nil, err
	}
	index, err := s.Encode(int64(len(content)), sum, before)
	if err != nil {
		return nil, err
	}
	name, next := autosave.FolderHistory+"/"+s.Name, autosave.FolderIndex+"/"+s.Index
	p.step(powerStep{path: name, kind: powerWrite, data: content})
	p.step(powerStep{path: name, kind: powerWrite, data: seal, at: len(content)})
	if !p.Hasty {
		p.step(powerStep{path: name, kind: powerFlush})
	}
	p.step(powerStep{path: next, kind: powerWrite, data: index})
	p.step(powerStep{path: next, kind: powerFlush})
	return p.List(ctx, autosave.FolderIndex)
}

// String returns the paths, for a test that fails.
func (d *Disk) String() string { return strings.Join(d.Paths(), " ") }
