//go:build js && wasm

package opfs

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// notReadable is how engines say that the file is being written.
const notReadable = "NotReadableError"

// Files is the [autosave.Files] under <root>/autosave/ in the origin private file system.
type Files struct {
	dir     *Dir
	folders map[string]*Dir // those of a Layout, each with its handle
}

// NewFiles returns the files of the project root. Nothing is touched before the first call.
// It fails with lock.ErrInvalidArgument where root cannot be a folder.
func NewFiles(root string) (*Files, error) {
	dir, err := NewDir(root)
	if err != nil {
		return nil, err
	}
	dir = dir.Sub("autosave")
	return &Files{dir: dir, folders: map[string]*Dir{
		autosave.FolderIndex: dir.Sub(autosave.FolderIndex), autosave.FolderHistory: dir.Sub(autosave.FolderHistory)}}, nil
}

// Check fails with lock.ErrUnsupported, saying why and what can be done, where this browser
// or context cannot store files.
func (f *Files) Check(ctx context.Context) error {
	const name = "probe"
	file, err := f.dir.file(ctx, name, true)
	if err == nil {
		err = probe(ctx, file)
		_ = f.dir.remove(ctx, name)
	}
	if isNamed(err, inUse...) { // another page checks
		err = nil
	}
	return f.dir.explain(ctx, f.dir.String(), err)
}

// List implements [autosave.Files].
func (f *Files) List(ctx context.Context, folder string) ([]string, error) {
	return f.folders[folder].names(ctx)
}

// Read implements [autosave.Files]. It takes no handle: any number of pages may read.
func (f *Files) Read(ctx context.Context, folder, name string) ([]byte, error) {
	file, err := f.folders[folder].file(ctx, name, false)
	if err == nil {
		file, err = call(ctx, file, "getFile")
	}
	if err == nil {
		file, err = call(ctx, file, "arrayBuffer")
	}
	if isNamed(err, notFound, notReadable) {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	return copied(file)
}

// copied returns the content of an ArrayBuffer.
func copied(buffer safejs.Value) ([]byte, error) {
	class, err := safejs.Global().Get("Uint8Array")
	if err != nil {
		return nil, err
	}
	array, err := class.New(buffer)
	if err != nil {
		return nil, err
	}
	return jsbridge.Bytes(array)
}

// Write implements [autosave.Files].
func (f *Files) Write(ctx context.Context, folder, name string, content []byte) error {
	file, err := f.folders[folder].file(ctx, name, true)
	if err != nil {
		return noRoom(err)
	}
	h, err := openHandle(ctx, file)
	if err != nil {
		return noRoom(err)
	}
	defer h.close()
	return noRoom(h.write(ctx, 0, content))
}

// noRoom tells that the storage is full, by whichever of its signs.
func noRoom(err error) error {
	if errors.Is(err, errShort) || isNamed(err, noQuota) {
		return &autosave.Error{Code: autosave.CodeQuota, Err: err,
			Detail: "the storage of this site is full; what was saved before stays, and it is tried again"}
	}
	return err
}

// Remove implements [autosave.Files].
func (f *Files) Remove(ctx context.Context, folder, name string) error {
	err := f.folders[folder].remove(ctx, name)
	if isNamed(err, notFound) {
		return nil
	}
	return err
}

// SHA256 is the [autosave.Digest] of the browser.
func SHA256(ctx context.Context, content []byte) (string, error) {
	array, err := jsbridge.Uint8Array(content)
	if err != nil {
		return "", err
	}
	crypto, err := safejs.Global().Get("crypto")
	if err != nil {
		return "", err
	}
	subtle, err := crypto.Get("subtle")
	if err != nil {
		return "", err
	}
	buffer, err := call(ctx, subtle, "digest", "SHA-256", array)
	if err != nil {
		return "", err
	}
	sum, err := copied(buffer)
	return hex.EncodeToString(sum), err
}
