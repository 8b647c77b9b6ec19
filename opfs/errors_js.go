//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"slices"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// Names of exceptions.
const (
	notFound     = "NotFoundError"
	noQuota      = "QuotaExceededError"
	notOpened    = "TimeoutError" // the name that files.js gives to errNotOpened of Go
	typeMismatch = "TypeMismatchError"
	invalidState = "InvalidStateError"
)

// inUse are the names by which engines say that the file is already open. Chromium and Firefox use the first, WebKit
// the second.
var inUse = []string{"NoModificationAllowedError", invalidState}

// busy reports whether a file could not be opened now, but may be opened later: it is already open, or the browser did
// not answer.
func busy(err error) bool {
	return unanswered(err) || isNamed(err, inUse...)
}

// unanswered reports whether the browser did not answer the request to open a file.
func unanswered(err error) bool { return errors.Is(err, errNotOpened) || isNamed(err, notOpened) }

func isNamed(err error, names ...string) bool {
	return err != nil && slices.Contains(names, jsbridge.ExceptionName(err))
}

// refusals lists exceptions of the file system with what they mean for the caller and what the caller can do.
var refusals = []struct{ name, meaning string }{
	{"SecurityError", "the browser refuses storage here, as it does in private windows, in frames of other sites and where the site's data is blocked; open the page in a normal window and allow it to store data"},
	{"NotAllowedError", "the browser refuses storage here, as it does in private windows, in frames of other sites and where the site's data is blocked; open the page in a normal window and allow it to store data"},
	{"UnknownError", "the browser's storage does not work, as in some private windows; open the page in a normal window"},
	{"InvalidStateError", "the browser's storage does not work in this document; open the page in a normal window"},
	{"NotSupportedError", "there are no sync access handles here, which file locks need: they exist in dedicated workers, which shared workers and service workers cannot start, since Chrome 102, Firefox 111 and Safari 15.2"},
	{"NetworkError", "the helper worker that opens files for a page does not run; is holdfast-helper.js there, and does the content security policy allow it (worker-src)?"},
	{noQuota, "the storage of this site is full; free some space and try again"},
	{typeMismatch, "there is a folder where the file should be, or a file where a folder should be; remove it"},
	{"NotReadableError", "the file cannot be read; close other programs that have it open"},
	{"InvalidModificationError", "there is a folder that is not empty where the file should be; remove it"},
}

// meaning returns what an exception means, or nothing if it is none of the file system.
func meaning(name string) string {
	for _, r := range refusals {
		if r.name == name {
			return r.meaning
		}
	}
	return ""
}

// explain turns an exception on a path into an error that says what can be done. NotFoundError and errors that are no
// exceptions of the file system stay unchanged. A storage that does not answer may answer later, so that error can be
// retried.
func (d *Dir) explain(ctx context.Context, path string, err error) error {
	var explained *lock.Error
	if err == nil || ctx.Err() != nil || errors.As(err, &explained) {
		return err
	}
	if errors.Is(err, errSilent) || unanswered(err) || isNamed(err, invalidState) {
		return &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire, Detail: path, Err: err}
	}
	detail := meaning(jsbridge.ExceptionName(err))
	if errors.Is(err, ErrNoStorage) {
		detail = noStorageHere()
	}
	if detail == "" {
		return err
	}
	if path != "" {
		detail = path + ": " + detail
	}
	return unsupported(detail, err)
}

func unsupported(detail string, err error) error {
	return &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Detail: detail, Err: err}
}

func noStorageHere() string {
	secure, err := safejs.Global().Get("isSecureContext")
	if ok, _ := secure.Truthy(); err == nil && !ok {
		return "browsers offer file storage to secure pages only; serve this page over https or from localhost"
	}
	return "this browser has no file storage (navigator.storage.getDirectory); Chrome 102, Firefox 111 and Safari 15.2 were the first to have it"
}
