//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

// handle is an open sync access handle: while it is open nobody else can open, read or remove the file. It must be
// closed.
type handle struct{ value safejs.Value }

// errNoHandles says that neither this program nor a helper has sync access handles.
var errNoHandles = errors.New("createSyncAccessHandle is missing")

// openLimit is the maximum time to open a file: under heavy load Chromium sometimes never answers.
const openLimit = 2 * time.Second

var errNotOpened = errors.New("the browser has not opened a file in time; close all tabs of this site, or restart the browser")

// openings is how many times in a row a file is opened without an answer of the browser.
const openings = 3

// openHandle opens a file. If the file is already open, it fails at once with an error for which busy is true. A handle
// that arrives after ctx or openLimit has ended is closed.
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

// closeLate closes a handle that nobody waits for any more. The browser settles the promise in any case.
func closeLate(promise safejs.Value) {
	if value, err := jsbridge.Await(context.Background(), promise); err == nil {
		(&handle{value}).close()
	}
}

// probe returns the errors of openHandle. With a helper, a page that freezes during the probe does not keep the file
// open.
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

// openFile asks for a handle: from the helper, if there is one.
func openFile(file safejs.Value) (promise safejs.Value, err error) {
	if helped() {
		return helper.Call("open", file)
	}
	method, err := file.Get("createSyncAccessHandle")
	if err != nil || method.Type() != safejs.TypeFunction {
		return promise, unsupported(meaning("NotSupportedError"), errNoHandles)
	}
	return file.Call("createSyncAccessHandle")
}

// ended reports whether the helper that had the file open has ended, so that the file is closed.
func (h *handle) ended() bool {
	if !helped() {
		return false
	}
	ended, err := h.value.Call("ended")
	if err != nil {
		return false
	}
	yes, _ := ended.Bool()
	return yes
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

// write writes data to the beginning of the file and flushes it before it returns.
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
