//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

// handle is an open sync access handle: while it is open nobody else can open the file,
// read it or remove it. It must be closed.
type handle struct{ value safejs.Value }

// errNoHandles tells that neither this program nor a helper can have handles.
var errNoHandles = errors.New("createSyncAccessHandle is missing")

// openLimit is how long the browser may take to open a file: under heavy load Chromium
// was seen never to answer.
const openLimit = 2 * time.Second

var errNotOpened = errors.New("the browser has not opened a file in time; close all tabs of this site, or restart the browser")

// openings bounds how often in a row a file is opened that the browser does not open.
const openings = 3

// openHandle opens a file. It fails with an error that is busy, at once where somebody has
// it open. Where ctx or openLimit ends meanwhile, what is opened later is closed.
func openHandle(ctx context.Context, file safejs.Value) (*handle, error) {
	promise, err := openFile(file)
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeoutCause(ctx, openLimit, errNotOpened)
	defer stop()
	value, err := jsbridge.Await(limited, promise)
	if err != nil && limited.Err() != nil {
		go closeLate(promise)
	}
	if err != nil {
		return nil, err
	}
	return &handle{value}, nil
}

// closeLate closes a handle that nobody waits for any more. The promise settles
// whatever happens; there is nothing to wait for but the browser.
func closeLate(promise safejs.Value) {
	if value, err := jsbridge.Await(context.Background(), promise); err == nil {
		(&handle{value}).close()
	}
}

// probe fails as openHandle does. With a helper, a page that is frozen in the midst of it
// does not keep the file open.
func probe(ctx context.Context, file safejs.Value) error {
	if helped() {
		_, err := call(ctx, helper, "probe", file)
		return err
	}
	h, err := openHandle(ctx, file)
	if err == nil {
		h.close()
	}
	return err
}

// openFile asks for a handle: the helper's where there is a helper.
func openFile(file safejs.Value) (promise safejs.Value, err error) {
	if helped() {
		return helper.Call("open", file)
	}
	method, err := file.Get("createSyncAccessHandle")
	if err != nil || method.Type() != safejs.TypeFunction {
		return promise, unsupported(refusals["NotSupportedError"], errNoHandles)
	}
	return file.Call("createSyncAccessHandle")
}

// close closes the handle; afterwards the file can be opened and removed.
func (h *handle) close() {
	closing, err := h.value.Call("close")
	if err != nil || closing.IsUndefined() {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), stepLimit)
	defer stop()
	_, _ = jsbridge.Await(ctx, closing)
}

// write writes data to the beginning of the file and has it stored before it returns.
func (h *handle) write(ctx context.Context, data []byte) error {
	buffer, err := jsbridge.Uint8Array(data)
	if err != nil {
		return err
	}
	written, err := call(ctx, h.value, "write", buffer, map[string]any{"at": 0})
	if err != nil {
		return err
	}
	if n, err := written.Int(); err != nil || n != len(data) {
		return errShort
	}
	_, err = call(ctx, h.value, "flush")
	return err
}

var errShort = errors.New("the storage of this site is probably full")
