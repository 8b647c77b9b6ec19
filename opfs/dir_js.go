//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// Dir is a folder of the origin private file system. The folder is made when it is first needed, and made again after
// somebody removed it. Nothing outside it is ever touched. It needs no mutex, see requests.
type Dir struct {
	parent *Dir // nil for the origin's own root
	name   string

	handle    safejs.Value
	opened    bool
	forgotten int // how many times
}

// NewDir returns the folder root, whose components are separated by slashes. It fails with lock.ErrInvalidArgument if
// one of them cannot be the name of a folder.
func NewDir(root string) (*Dir, error) {
	d := &Dir{}
	for _, name := range strings.Split(root, "/") {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "\\\x00") {
			return nil, &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire,
				Detail: "root must be names of folders separated by single slashes, not \"" + root + "\""}
		}
		d = d.Sub(name)
	}
	return d, nil
}

// Sub returns a folder in d.
func (d *Dir) Sub(name string) *Dir { return &Dir{parent: d, name: name} }

// String returns the path of the folder.
func (d *Dir) String() string {
	if d.parent == nil || d.parent.parent == nil {
		return d.name
	}
	return d.parent.String() + "/" + d.name
}

// open returns the handle of the folder.
func (d *Dir) open(ctx context.Context) (safejs.Value, error) {
	if d.opened {
		return d.handle, nil
	}
	var handle safejs.Value
	var err error
	forgotten := d.forgotten
	if d.parent == nil {
		handle, err = storage(ctx)
	} else if handle, err = d.parent.open(ctx); err == nil {
		handle, err = call(ctx, handle, "getDirectoryHandle", d.name, map[string]any{"create": true})
	}
	if err != nil {
		return safejs.Value{}, d.explain(ctx, d.String(), err)
	}
	if d.forgotten == forgotten {
		d.handle, d.opened = handle, true
	}
	return handle, nil
}

// forget makes the next call open the folder and its parents again.
func (d *Dir) forget() {
	for ; d != nil; d = d.parent {
		d.opened = false
		d.forgotten++
	}
}

// file returns the handle of a file in the folder. Without create, it fails with a NotFoundError if there is no such
// file.
func (d *Dir) file(ctx context.Context, name string, create bool) (safejs.Value, error) {
	for again := true; ; again = false {
		folder, err := d.open(ctx)
		var file safejs.Value
		if err == nil {
			file, err = call(ctx, folder, "getFileHandle", name, map[string]any{"create": create})
		}
		if create && again && isNamed(err, notFound) { // the folder itself is gone
			d.forget()
			continue
		}
		return file, d.explain(ctx, d.String()+"/"+name, err)
	}
}

// remove removes a file of the folder. It fails if the file is open.
func (d *Dir) remove(ctx context.Context, name string) error {
	folder, err := d.open(ctx)
	if err == nil {
		_, err = call(ctx, folder, "removeEntry", name)
	}
	return err
}

// names lists the files and folders in the folder.
func (d *Dir) names(ctx context.Context) (names []string, err error) {
	folder, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := folder.Call("keys")
	if err != nil {
		return nil, err
	}
	for {
		step, err := call(ctx, keys, "next")
		if isNamed(err, notFound) {
			d.forget()
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		done, err := step.Get("done")
		if err != nil {
			return nil, err
		}
		if over, err := done.Truthy(); over || err != nil {
			return names, err
		}
		value, err := step.Get("value")
		if err != nil {
			return nil, err
		}
		name, err := value.String()
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
}

// ErrNoStorage says that this browser or this page has no file storage at all.
var ErrNoStorage = errors.New("navigator.storage.getDirectory is missing")

// storage returns the root of the origin private file system.
func storage(ctx context.Context) (root safejs.Value, err error) {
	manager, err := safejs.Global().Get("navigator")
	if err == nil {
		manager, err = manager.Get("storage")
	}
	if err != nil || manager.Type() != safejs.TypeObject {
		return root, ErrNoStorage
	}
	if f, err := manager.Get("getDirectory"); err != nil || f.Type() != safejs.TypeFunction {
		return root, ErrNoStorage
	}
	return call(ctx, manager, "getDirectory")
}

// callLimit is how long the browser may take for one call of its file storage.
const callLimit = 5 * time.Second

// errSilent says that the browser did not answer a call in time, and what the user can do. Chromium answers few calls
// after the data of a site was cleared while a file was being opened: it answers after many seconds, with an
// InvalidStateError.
var errSilent = errors.New("the browser's file storage does not answer; close all tabs of this site, or restart the browser")

// ask calls a method that has a limit of its own, and awaits what it returns.
func ask(ctx context.Context, v safejs.Value, method string, args ...any) (safejs.Value, error) {
	result, err := v.Call(method, args...)
	if err != nil {
		return safejs.Value{}, err
	}
	return jsbridge.Await(ctx, result)
}

// call calls a method and awaits what it returns. It fails with errSilent if the browser takes too long.
func call(ctx context.Context, v safejs.Value, method string, args ...any) (safejs.Value, error) {
	result, err := v.Call(method, args...)
	if err != nil {
		return safejs.Value{}, err
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < callLimit {
		return jsbridge.Await(ctx, result)
	}
	limited, end := context.WithCancelCause(ctx)
	defer end(nil)
	half, halves := callLimit/2, 1
	// The time has two halves. After the thread stood still, the first timer fires at once, and the browser's answer
	// has the second half.
	var timer *time.Timer
	timer = time.AfterFunc(half, func() {
		if halves--; halves < 0 {
			end(errSilent)
		} else {
			timer.Reset(half)
		}
	})
	defer timer.Stop()
	return jsbridge.Await(limited, result)
}
