// Package autosavetest contains the test tools of AutoSave: a storage in memory whose every operation can fail, and the
// suite that every Store must pass.
package autosavetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// Disk is a storage in memory, shared by the clients that [Disk.Client] returns, as the tabs of one origin share
// theirs.
type Disk struct {
	mu       sync.Mutex
	files    map[string][]byte
	capacity int // 0: without limits
}

// NewDisk returns an empty storage without limits.
func NewDisk() *Disk { return &Disk{files: make(map[string][]byte)} }

// Clone returns a storage with the same present content.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{files: maps.Clone(d.files), capacity: d.capacity}
}

// SetCapacity sets the size of the storage in bytes; 0 means no limit.
func (d *Disk) SetCapacity(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = n
}

// Client returns the files of one page.
func (d *Disk) Client() *Client { return NewClient(d.Stepped(nil)) }

// Stepped returns the files of one page. before, if set, runs before each of the smallest steps, such as "write
// index/1-2.json"; other pages may run their steps between two of them. With a Fault the page dies in the step.
func (d *Disk) Stepped(before func(step string) Fault) autosave.Files { return disk{d, before} }

// disk is the [autosave.Files] of a Disk.
type disk struct {
	*Disk
	before func(step string) Fault
}

func (d disk) step(name string) (Fault, error) {
	if d.before == nil {
		return 0, nil
	}
	fault := d.before(name)
	if fault == 0 {
		return 0, nil
	}
	return fault, ErrKilled
}

// List returns the names in order.
func (d disk) List(_ context.Context, folder string) ([]string, error) {
	if _, err := d.step("list " + folder); err != nil {
		return nil, err
	}
	var names []string
	for _, path := range d.Paths() {
		if name, ok := strings.CutPrefix(path, folder+"/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (d disk) Read(_ context.Context, folder, name string) ([]byte, error) {
	path := folder + "/" + name
	if _, err := d.step("read " + path); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.files[path]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return slices.Clone(content), nil
}

// Write panics if the file was written before.
func (d disk) Write(_ context.Context, folder, name string, content []byte) error {
	return d.write(folder+"/"+name, content, false)
}

// write writes in one step. If the file was made already, write fills it, even if another page has removed it since.
func (d disk) write(path string, content []byte, made bool) error {
	fault, err := d.step("write " + path)
	switch fault {
	case Refused:
		return err
	case Torn:
		content = content[:len(content)/2]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, ok := d.files[path]; ok && !made || len(before) > 0 {
		panic(path + " is written twice")
	}
	if d.capacity != 0 && d.used()+len(content) > d.capacity {
		content = content[:max(0, min(len(content), d.capacity-d.used()))]
		err = &autosave.Error{Code: autosave.CodeQuota, Detail: "the disk is full"}
	}
	d.files[path] = slices.Clone(content)
	return err
}

// Preopen makes the files, empty.
func (d disk) Preopen(name, index string) {
	_ = d.write(autosave.FolderHistory+"/"+name, nil, true)
	_ = d.write(autosave.FolderIndex+"/"+index, nil, true)
}

// Save makes an empty index first. The content is stored before Encode is called, as it may be in a browser.
func (d disk) Save(ctx context.Context, s autosave.Saving) ([]string, error) {
	index := autosave.FolderIndex + "/" + s.Index
	if err := d.write(index, nil, true); err != nil {
		return nil, errors.Join(autosave.ErrNotBegun, err)
	}
	before, err := d.List(ctx, autosave.FolderIndex)
	if err != nil {
		return nil, err
	}
	content, seal, sum, err := taken(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := d.write(autosave.FolderHistory+"/"+s.Name, slices.Concat(content, seal), true); err != nil {
		return nil, errors.Join(autosave.ErrNotBegun, err)
	}
	told, err := s.Encode(int64(len(content)), sum, before)
	if err != nil {
		return nil, err
	}
	if err := d.write(index, told, true); err != nil {
		return nil, err
	}
	return d.List(ctx, autosave.FolderIndex)
}

// taken takes the content of a saving and returns it with its seal and its SHA-256.
func taken(ctx context.Context, s autosave.Saving) (content, seal []byte, sum string, err error) {
	c, err := s.Take(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	if content, err = c.Bytes(); err != nil {
		return nil, nil, "", err
	}
	sum, _ = SHA256(ctx, content)
	return content, autosave.Seal(int64(len(content)), sum, s.Note()), sum, nil
}

func (d disk) Remove(_ context.Context, folder, name string) error {
	path := folder + "/" + name
	if _, err := d.step("remove " + path); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, path)
	return nil
}

// Cut truncates a file to nothing.
func (d *Disk) Cut(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[path] = nil
}

// Used returns the number of bytes in use.
func (d *Disk) Used() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used()
}

func (d *Disk) used() (n int) {
	for _, content := range d.files {
		n += len(content)
	}
	return n
}

// Evict empties the storage, as a browser that needs the room does.
func (d *Disk) Evict() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.files)
}

// Forget removes the indexes or, if cut is set, truncates each of them to nothing.
func (d *Disk) Forget(cut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path := range d.files {
		switch {
		case !strings.HasPrefix(path, autosave.FolderIndex+"/"):
		case cut:
			d.files[path] = nil
		default:
			delete(d.files, path)
		}
	}
}

// Corrupt changes the first byte of a file, or removes the file if it is empty.
func (d *Disk) Corrupt(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.files[path]
	if !ok || len(content) == 0 {
		delete(d.files, path)
		return
	}
	content = slices.Clone(content)
	content[0]++
	d.files[path] = content
}

// Paths returns the paths of all files, in order.
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
