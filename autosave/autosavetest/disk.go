// Package autosavetest has what AutoSave is tested with: a storage in memory whose every
// operation can fail, and the suite that every Store has to pass.
package autosavetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/autosave"
)

// SHA256 is the [autosave.Digest] of the standard library.
func SHA256(_ context.Context, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// Disk is a storage in memory, shared by the clients that [Disk.Client] returns, as the
// tabs of one origin share theirs.
type Disk struct {
	mu       sync.Mutex
	files    map[string][]byte
	capacity int // 0: without limits
}

// NewDisk returns an empty storage without limits.
func NewDisk() *Disk { return &Disk{files: make(map[string][]byte)} }

// SetCapacity sets how many bytes there is room for; 0 means any number.
func (d *Disk) SetCapacity(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = n
}

// Client returns the files as one page has them.
func (d *Disk) Client() *Client { return NewClient(disk{d}) }

// disk is the [autosave.Files] of a Disk, without faults.
type disk struct{ *Disk }

func (d disk) List(_ context.Context, folder string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for path := range d.files {
		if name, ok := strings.CutPrefix(path, folder+"/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (d disk) Read(_ context.Context, folder, name string) ([]byte, error) {
	path := folder + "/" + name
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.files[path]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return slices.Clone(content), nil
}

// Write panics where the file was written before.
func (d disk) Write(_ context.Context, folder, name string, content []byte) error {
	path := folder + "/" + name
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.files[path]; ok {
		panic(path + " is written twice")
	}
	if d.capacity != 0 && d.used()+len(content) > d.capacity {
		d.files[path] = slices.Clone(content[:min(len(content), d.capacity-d.used())])
		return &autosave.Error{Code: autosave.CodeQuota, Detail: "the disk is full"}
	}
	d.files[path] = slices.Clone(content)
	return nil
}

// Save makes an empty index first.
func (d disk) Save(ctx context.Context, s autosave.Saving) ([]string, error) {
	if err := d.Write(ctx, autosave.FolderIndex, s.Index, nil); err != nil {
		return nil, err
	}
	before, _ := d.List(ctx, autosave.FolderIndex)
	content, err := s.Take(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.Write(ctx, autosave.FolderHistory, s.Name, content); err != nil {
		return nil, err
	}
	sum, _ := SHA256(ctx, content)
	index, err := s.Encode(sum, before)
	if err != nil {
		return nil, err
	}
	_ = d.Remove(ctx, autosave.FolderIndex, s.Index)
	if err := d.Write(ctx, autosave.FolderIndex, s.Index, index); err != nil {
		return nil, err
	}
	return d.List(ctx, autosave.FolderIndex)
}

func (d disk) Remove(_ context.Context, folder, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, folder+"/"+name)
	return nil
}

func (d *Disk) used() (n int) {
	for _, content := range d.files {
		n += len(content)
	}
	return n
}

// Evict empties the storage, as a browser does that needs the room.
func (d *Disk) Evict() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.files)
}

// Corrupt changes one byte of a file, or cuts it off where it is empty.
func (d *Disk) Corrupt(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.files[path]
	if !ok || len(content) == 0 {
		delete(d.files, path)
		return
	}
	content = slices.Clone(content)
	content[len(content)/2]++
	d.files[path] = content
}

// Paths returns what there is, in order.
func (d *Disk) Paths() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var paths []string
	for path := range d.files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}
