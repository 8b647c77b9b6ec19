//go:build js && wasm

package opfs

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// notReadable is the exception for a file that is being written.
const notReadable = "NotReadableError"

// Files is the [autosave.Files] under <root>/autosave/ in the origin private file system.
type Files struct {
	dir     *Dir
	folders map[string]*Dir // those of a Layout, each with its handle
	writer  safejs.Value
}

// NewFiles returns the files of the project root. Nothing is touched before the first call. It fails with
// lock.ErrInvalidArgument if root cannot be a folder. writer is a SaveWriter of savewriter.js or, for a program in a page, a
// Files of files.js; it receives a [jsbridge.Content] unchanged.
func NewFiles(root string, writer safejs.Value) (*Files, error) {
	dir, err := NewDir(root)
	if err != nil {
		return nil, err
	}
	dir = dir.Sub("autosave")
	return &Files{dir: dir, writer: writer, folders: map[string]*Dir{
		autosave.FolderIndex: dir.Sub(autosave.FolderIndex), autosave.FolderHistory: dir.Sub(autosave.FolderHistory)}}, nil
}

// Folder implements [Place].
func (f *Files) Folder() string { return f.dir.String() }

// Check implements [Place].
func (f *Files) Check(ctx context.Context) error {
	const name = "probe"
	file, err := f.dir.file(ctx, name, true)
	if err == nil {
		if err = probe(ctx, file); busy(err) || isNamed(err, notFound) { // another page checks at the same time: it has the file open, or has removed it
			err = nil
		}
		_ = f.dir.remove(ctx, name)
	}
	if isNamed(err, noQuota) {
		if saved, listed := f.List(ctx, autosave.FolderIndex); listed == nil && len(saved) > 0 {
			err = nil // a full storage has files, and what is saved in them can be read
		}
	}
	return f.dir.explain(ctx, f.dir.String(), err)
}

// List implements [autosave.Files].
func (f *Files) List(ctx context.Context, folder string) ([]string, error) {
	return f.folders[folder].names(ctx)
}

// Read implements [autosave.Files]. It takes no handle, so any number of pages may read.
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
	return noRoom(h.write(ctx, content))
}

// noRoom returns a quota error if err is one of the signs of a full storage.
func noRoom(err error) error {
	if errors.Is(err, errShort) || isNamed(err, noQuota) {
		return &autosave.Error{Code: autosave.CodeQuota, Err: err,
			Detail: "the storage of this site is full; the saved content stays, and the page tries again"}
	}
	return err
}

// Remove implements [autosave.Files]. Earlier calls of this program to JavaScript run first.
func (f *Files) Remove(ctx context.Context, folder, name string) error {
	class, err := safejs.Global().Get("Promise")
	if err == nil {
		_, err = call(ctx, class, "resolve")
	}
	if err != nil {
		return err
	}
	err = f.folders[folder].remove(ctx, name)
	if isNamed(err, notFound) {
		return nil
	}
	return err
}

// Preopen implements [autosave.Files].
func (f *Files) Preopen(name, index string) {
	_, _ = f.writer.Call("preopen", f.dir.String(), name, index) // the save makes what this call could not make
}

// Rest implements [Place].
func (f *Files) Rest(ctx context.Context) {
	_, _ = call(ctx, f.writer, "preopen", f.dir.String())
}

// saves counts the saves of this program.
var saves atomic.Int64

// Save implements [autosave.Files]. The files are opened while the content is taken.
func (f *Files) Save(ctx context.Context, s autosave.Saving) ([]string, error) {
	id := saves.Add(1)
	_, _ = f.writer.Call("prepare", id, f.dir.String(), s.Name, s.Index) // store reports a failure
	index, err := f.store(ctx, id, s)
	if err != nil {
		return nil, err
	}
	listed, err := ask(ctx, f.writer, "finish", id, index)
	if err != nil {
		return nil, f.refused(ctx, err)
	}
	if listed.Type() == safejs.TypeObject {
		return nil, errors.Join(f.refused(ctx, jsbridge.Rejection{Reason: listed}), autosave.ErrNotBegun)
	}
	list, err := listed.String()
	return strings.Split(list, "/"), err
}

// store begins to write the content and returns the index to write. If it fails, the files are closed when it returns
// or, after the end of ctx, when the browser answers.
func (f *Files) store(ctx context.Context, id int64, s autosave.Saving) (index safejs.Value, err error) {
	var storing safejs.Value
	content, err := s.Take(ctx)
	if err == nil {
		storing, err = f.pass(id, content, s.Note())
	}
	if err != nil {
		f.abandon(id, safejs.Undefined())
		return index, err
	}
	told, err := jsbridge.Await(ctx, storing)
	if err != nil {
		if ctx.Err() != nil {
			go f.abandon(id, storing)
		}
		return index, f.refused(ctx, err)
	}
	if index, err = encoded(s, told); err != nil {
		f.abandon(id, safejs.Undefined())
	}
	return index, err
}

func (f *Files) pass(id int64, content autosave.Content, note string) (safejs.Value, error) {
	if c, ok := content.(jsbridge.Content); ok {
		return f.writer.Call("store", id, c.Object, note)
	}
	bytes, err := content.Bytes()
	if err != nil {
		return safejs.Value{}, err
	}
	array, err := jsbridge.Uint8Array(bytes)
	if err != nil {
		return array, err
	}
	return f.writer.Call("store", id, map[string]any{"bytes": array}, note)
}

// abandon closes the files of a save, once its pending call has ended.
func (f *Files) abandon(id int64, storing safejs.Value) {
	ctx, stop := context.WithTimeout(context.Background(), stepLimit)
	defer stop()
	_, _ = jsbridge.Await(ctx, storing)
	_, _ = call(ctx, f.writer, "finish", id)
}

// encoded returns the index to write, made from the result of store.
func encoded(s autosave.Saving, told safejs.Value) (array safejs.Value, err error) {
	text, err := told.String()
	if err != nil {
		return array, err
	}
	parts := strings.Split(text, "/")
	bytes, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return array, err
	}
	index, err := s.Encode(bytes, parts[1], parts[2:])
	if err != nil {
		return array, err
	}
	return jsbridge.Uint8Array(index)
}

// refused explains why nothing could be written.
func (f *Files) refused(ctx context.Context, err error) error {
	if err := noRoom(err); errors.Is(err, autosave.ErrQuota) {
		return err
	}
	if isNamed(err, notOpened) {
		return errors.Join(autosave.ErrNotOpened, err)
	}
	return f.dir.explain(ctx, f.dir.String(), err)
}

// SHA256 is the [autosave.Digest] that the browser computes.
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
