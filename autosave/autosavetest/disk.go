// Package autosavetest has what AutoSave is tested with: a storage in memory whose every
// operation can fail, and the suite that every Store has to pass.
package autosavetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

// Fault is how an operation fails.
type Fault int

// The faults. All make the operation fail.
const (
	Refused Fault = iota + 1 // nothing has happened
	Torn                     // of what was to be written, half is
	Lied                     // it has happened all the same
)

// Faults are all of them.
var Faults = []Fault{Refused, Torn, Lied}

func (f Fault) String() string { return [...]string{"none", "refused", "torn", "lied"}[f] }

var (
	// ErrDisk is the error of an operation that was made to fail.
	ErrDisk = errors.New("the disk failed")
	// ErrKilled is the error of every operation of a client that was killed.
	ErrKilled = errors.New("the page is gone")
)

// Client is the [autosave.Files] of one page.
type Client struct {
	disk *Disk

	mu     sync.Mutex
	ops    int // so far
	at     int // operation that fails, where fault is set
	fault  Fault
	dies   bool // with it
	always bool // every later one fails too
	killed bool
	log    []string

	// Before, where set, runs before each operation, which it is told of as
	// "write history/1-2". It may block, as a page does that is frozen there.
	Before func(operation string)
}

// Client returns the files as one page has them.
func (d *Disk) Client() *Client { return &Client{disk: d} }

// Break makes the n-th operation from now on fail, 0 being the next one. If it dies,
// no later operation has an effect, as if the page were killed there.
func (c *Client) Break(n int, f Fault, dies bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.fault, c.dies, c.always = c.ops+n, f, dies, false
}

// Fail makes every operation from now on fail.
func (c *Client) Fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.fault, c.dies, c.always = c.ops, Refused, false, true
}

// Mend ends what Break and Fail have begun.
func (c *Client) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.always = 0, false
}

// Kill lets no later operation have an effect.
func (c *Client) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
}

// Ops returns how many operations there were.
func (c *Client) Ops() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ops
}

// Log returns the operations since it was last called.
func (c *Client) Log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	return log
}

// step counts an operation and says how it fails.
func (c *Client) step(ctx context.Context, operation string) (Fault, error) {
	if c.Before != nil {
		c.Before(operation)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return Refused, context.Cause(ctx)
	}
	if c.killed {
		return Refused, ErrKilled
	}
	n := c.ops
	c.ops++
	c.log = append(c.log, operation)
	if c.fault == 0 || n != c.at && !(c.always && n > c.at) {
		return 0, nil
	}
	c.killed = c.dies
	return c.fault, fmt.Errorf("%w at %s", ErrDisk, operation)
}

// List implements [autosave.Files].
func (c *Client) List(ctx context.Context, folder string) ([]string, error) {
	if _, err := c.step(ctx, "list "+folder); err != nil {
		return nil, err
	}
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	var names []string
	for path := range c.disk.files {
		if name, ok := strings.CutPrefix(path, folder+"/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// Read implements [autosave.Files].
func (c *Client) Read(ctx context.Context, folder, name string) ([]byte, error) {
	path := folder + "/" + name
	if _, err := c.step(ctx, "read "+path); err != nil {
		return nil, err
	}
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	content, ok := c.disk.files[path]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return slices.Clone(content), nil
}

// Write implements [autosave.Files]. It panics where the file was written before.
func (c *Client) Write(ctx context.Context, folder, name string, content []byte) error {
	path := folder + "/" + name
	fault, err := c.step(ctx, "write "+path)
	if fault == Refused {
		return err
	}
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	if _, ok := c.disk.files[path]; ok {
		panic(path + " is written twice")
	}
	if c.disk.capacity != 0 && c.disk.used()+len(content) > c.disk.capacity {
		c.disk.files[path] = slices.Clone(content[:min(len(content), c.disk.capacity-c.disk.used())])
		return &autosave.Error{Code: autosave.CodeQuota, Detail: "the disk is full"}
	}
	if fault == Torn {
		content = content[:len(content)/2]
	}
	c.disk.files[path] = slices.Clone(content)
	return err
}

// Remove implements [autosave.Files].
func (c *Client) Remove(ctx context.Context, folder, name string) error {
	path := folder + "/" + name
	fault, err := c.step(ctx, "remove "+path)
	if fault == Refused || fault == Torn {
		return err
	}
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	delete(c.disk.files, path)
	return err
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
