//go:build js && wasm

package opfs

import (
	"context"
	"errors"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

// handle is an open sync access handle: while it is open nobody else can open the file,
// read it or remove it. It must be closed.
type handle struct{ value safejs.Value }

// errNoHandles tells that this is no dedicated worker.
var errNoHandles = errors.New("createSyncAccessHandle is missing")

// openHandle opens a file. It fails at once with an exception named in inUse where
// somebody has it open. Where ctx ends meanwhile, what was opened is closed.
func openHandle(ctx context.Context, file safejs.Value) (*handle, error) {
	method, err := file.Get("createSyncAccessHandle")
	if err != nil || method.Type() != safejs.TypeFunction {
		return nil, unsupported("file locks work in a dedicated worker only, and in browsers that have sync access handles; "+
			`leave the option host at "worker"`, errNoHandles)
	}
	promise, err := file.Call("createSyncAccessHandle")
	if err != nil {
		return nil, err
	}
	value, err := jsbridge.Await(ctx, promise)
	if err != nil && ctx.Err() != nil {
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

func (h *handle) close() { _, _ = h.value.Call("close") }

// read returns the whole content. A file larger than limit is cut there.
func (h *handle) read(ctx context.Context, limit int) ([]byte, error) {
	size, err := call(ctx, h.value, "getSize")
	if err != nil {
		return nil, err
	}
	n, err := size.Int()
	if err != nil || n == 0 {
		return nil, err
	}
	n = min(n, limit)
	buffer, err := bytesOf(n)
	if err != nil {
		return nil, err
	}
	if _, err := h.value.Call("read", buffer, map[string]any{"at": 0}); err != nil {
		return nil, err
	}
	content := make([]byte, n)
	_, err = safejs.CopyBytesToGo(content, buffer)
	return content, err
}

// write writes data at an offset and has it stored before it returns.
func (h *handle) write(ctx context.Context, offset int, data []byte) error {
	buffer, err := bytesOf(len(data))
	if err != nil {
		return err
	}
	if _, err := safejs.CopyBytesToJS(buffer, data); err != nil {
		return err
	}
	written, err := h.value.Call("write", buffer, map[string]any{"at": offset})
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

func bytesOf(n int) (safejs.Value, error) {
	class, err := safejs.Global().Get("Uint8Array")
	if err != nil {
		return safejs.Value{}, err
	}
	return class.New(n)
}
