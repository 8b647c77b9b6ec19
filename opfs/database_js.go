//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// Place is a place in this browser for the files of AutoSave.
type Place interface {
	autosave.Files
	// Check fails with lock.ErrUnsupported, with the reason and a remedy, if nothing can be stored here, and with
	// lock.ErrTimeout if the storage does not answer.
	Check(ctx context.Context) error
	// Rest closes the files that Preopen has opened. It returns when they are closed or ctx has ended.
	Rest(ctx context.Context)
	// Folder returns the name of the place, which is different for each document and storage.
	Folder() string
	// Drafts returns the drafts of the document that has this path. Journals is a Journals of journal.js.
	Drafts(path []string, journals safejs.Value, page DraftPage) *Drafts
}

// inDatabase begins the folders that are in IndexedDB, as in databasedrafts.js. No folder of [Files] has an empty
// component.
const inDatabase = "indexeddb://"

// InDatabase reports whether a folder of [Place] is in IndexedDB.
func InDatabase(folder string) bool { return strings.HasPrefix(folder, inDatabase) }

// Database is the [Place] in IndexedDB, for browsers that have no file storage for a page. A save is one transaction,
// which also lists the indexes: a page that was frozen before it sees every later editor.
type Database struct{ *Files }

// NewDatabase returns the place of a root that [NewFiles] accepts. database is a Database of database.js.
func NewDatabase(root string, database safejs.Value) Database {
	return Database{&Files{dir: (&Dir{}).Sub(inDatabase + root).Sub("autosave"), writer: database}}
}

// Refused reports whether a failed check of [Files] means that this browser never stores files for this page. Other
// failures may pass, and what was saved in files must not seem to be gone meanwhile.
func Refused(err error) bool {
	return errors.Is(err, ErrNoStorage) || errors.Is(err, errNoHandles) || isNamed(err, "SecurityError", "NotAllowedError", "NotSupportedError")
}

// Check implements [Place].
func (d Database) Check(ctx context.Context) error {
	_, err := d.call(ctx, "check")
	if explained := d.dir.explain(ctx, "IndexedDB", err); err == nil || ctx.Err() != nil || errors.Is(explained, lock.ErrTimeout) {
		return explained
	}
	return unsupported("the browser lets this page use neither files nor IndexedDB ("+err.Error()+
		"), as in frames of other sites and where the site's data is blocked; open the page in a normal window and allow it to store data", err)
}

// Holds reports whether the document has files here.
func (d Database) Holds(ctx context.Context) bool {
	held, err := d.call(ctx, "holds")
	yes, _ := held.Truthy()
	return err == nil && yes
}

// List implements [autosave.Files].
func (d Database) List(ctx context.Context, folder string) ([]string, error) {
	listed, err := d.call(ctx, "list", folder)
	if err != nil {
		return nil, err
	}
	names, err := listed.String()
	if err != nil || names == "" {
		return nil, err
	}
	return strings.Split(names, "/"), nil
}

// Read implements [autosave.Files].
func (d Database) Read(ctx context.Context, folder, name string) ([]byte, error) {
	content, err := d.call(ctx, "read", folder, name)
	if err != nil {
		return nil, err
	}
	if content.IsUndefined() {
		return nil, fs.ErrNotExist
	}
	return jsbridge.Bytes(content)
}

// Write implements [autosave.Files].
func (d Database) Write(ctx context.Context, folder, name string, content []byte) error {
	array, err := jsbridge.Uint8Array(content)
	if err == nil {
		_, err = d.call(ctx, "write", folder, name, array)
	}
	return noRoom(err)
}

// Remove implements [autosave.Files].
func (d Database) Remove(ctx context.Context, folder, name string) error {
	_, err := d.call(ctx, "remove", folder, name)
	return err
}

func (d Database) call(ctx context.Context, method string, args ...any) (safejs.Value, error) {
	return ask(ctx, d.writer, method, append([]any{d.Folder()}, args...)...)
}
