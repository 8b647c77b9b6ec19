package autosavetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/autosave"
)

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

// Client is the [autosave.Files] of one page, whose operations can be made to fail.
type Client struct {
	files autosave.Files

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

// NewClient returns the files, which are those of one page.
func NewClient(files autosave.Files) *Client { return &Client{files: files} }

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
	return c.files.List(ctx, folder)
}

// Read implements [autosave.Files].
func (c *Client) Read(ctx context.Context, folder, name string) ([]byte, error) {
	if _, err := c.step(ctx, "read "+folder+"/"+name); err != nil {
		return nil, err
	}
	return c.files.Read(ctx, folder, name)
}

// Write implements [autosave.Files].
func (c *Client) Write(ctx context.Context, folder, name string, content []byte) error {
	fault, planted := c.step(ctx, "write "+folder+"/"+name)
	switch fault {
	case Refused:
		return planted
	case Torn:
		content = content[:len(content)/2]
	}
	if err := c.files.Write(ctx, folder, name, content); err != nil {
		return err
	}
	return planted
}

// Remove implements [autosave.Files].
func (c *Client) Remove(ctx context.Context, folder, name string) error {
	fault, planted := c.step(ctx, "remove "+folder+"/"+name)
	if fault == Refused || fault == Torn {
		return planted
	}
	if err := c.files.Remove(ctx, folder, name); err != nil {
		return err
	}
	return planted
}

// Expect implements [autosave.Files].
func (c *Client) Expect(name, index string) {
	fault, _ := c.step(context.Background(), "expect "+autosave.FolderHistory+"/"+name)
	if fault != Refused && fault != Torn {
		c.files.Expect(name, index)
	}
}

// Save implements [autosave.Files]. Its steps are operations like those of the other
// methods: the look around once the content is taken, the writing of each file, and the last
// look around.
func (c *Client) Save(ctx context.Context, s autosave.Saving) ([]string, error) {
	content, err := s.Take(ctx)
	if err == nil {
		_, err = c.step(ctx, "list "+autosave.FolderIndex)
	}
	if err != nil {
		return nil, err
	}
	if fault, planted := c.step(ctx, "write "+autosave.FolderHistory+"/"+s.Name); fault != 0 {
		if fault != Refused {
			planted = errors.Join(planted, c.left(ctx, fault, s, content))
		}
		return nil, errors.Join(autosave.ErrNotBegun, planted)
	}
	s.Take = func(context.Context) (autosave.Content, error) { return content, nil }
	encode := s.Encode
	var planted error
	s.Encode = func(bytes int64, sum string, names []string) ([]byte, error) {
		index, err := encode(bytes, sum, names)
		if err != nil {
			return nil, err
		}
		var fault Fault
		fault, planted = c.step(ctx, "write "+autosave.FolderIndex+"/"+s.Index)
		switch fault {
		case Refused:
			index = nil
		case Torn:
			index = index[:len(index)/2]
		}
		return index, nil
	}
	names, err := c.files.Save(ctx, s)
	if err == nil {
		err = planted
	}
	if err == nil {
		_, err = c.step(ctx, "list "+autosave.FolderIndex)
	}
	return names, err
}

// left writes what is left of a save whose content was not written, after the index was spelled.
func (c *Client) left(ctx context.Context, f Fault, s autosave.Saving, taken autosave.Content) error {
	content, err := taken.Bytes()
	if err != nil {
		return err
	}
	names, err := c.files.List(ctx, autosave.FolderIndex)
	if err != nil {
		return err
	}
	sum, _ := SHA256(ctx, content)
	if _, err := s.Encode(int64(len(content)), sum, names); err != nil {
		return err
	}
	if err := c.files.Write(ctx, autosave.FolderIndex, s.Index, nil); err != nil {
		return err
	}
	if f == Torn {
		content = content[:len(content)/2]
	}
	return c.files.Write(ctx, autosave.FolderHistory, s.Name, content)
}

// PageOf returns an [autosave.Layout] over the files as the suite wants it.
func PageOf(files autosave.Files, digest autosave.Digest) Page {
	c := NewClient(files)
	return Page{Store: autosave.NewLayout(c, digest), Break: c.Break, Ops: c.Ops, Mend: c.Mend}
}
