// Package wopi serves the documents to office suites in the browser by Microsoft's protocol WOPI, below [Prefix]: the file
// operations CheckFileInfo, GetFile and PutFile, and those on locks.
//
// A lock of WOPI is the document's lock. Its id, which the office suite chooses, is the lease's note. All users of one suite
// who edit a document together share the id, so the holder of the lease is the document's editing session and not a user.
// The first user's name is the holder's name.
package wopi

import (
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/document"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// Prefix begins the path of every file.
const Prefix = "/wopi/"

// Config configures a [Handler]. All fields are required.
type Config struct {
	API      *httpapi.API
	Locks    *locks.Table
	Contents *content.Store
	// LockTTL is how long the lock lasts that a PutFile takes for itself.
	LockTTL time.Duration
}

// Handler serves the paths below [Prefix].
type Handler struct {
	Config
	mux *http.ServeMux
}

// call is a request about a document that the session may read.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	session sessions.Session
	id      string
	info    content.Info
}

var (
	errNoFile   = httpapi.Refusal(http.StatusNotFound, "document_not_found", "There is no such file.")
	errUnknown  = httpapi.Refusal(http.StatusNotImplemented, "not_implemented", "This operation is not supported.")
	errTooLarge = httpapi.Refusal(http.StatusPreconditionFailed, "precondition_failed", "The file is larger than X-WOPI-MaxExpectedSize.")
)

// New returns a handler.
func New(c Config) *Handler {
	h := &Handler{Config: c, mux: http.NewServeMux()}
	h.mux.Handle("GET /wopi/files/{id}", h.serve(h.checkFileInfo))
	h.mux.Handle("GET /wopi/files/{id}/contents", h.serve(h.getFile))
	h.mux.Handle("POST /wopi/files/{id}/contents", h.serve(h.putFile))
	h.mux.Handle("POST /wopi/files/{id}", h.serve(h.change))
	h.mux.HandleFunc("/wopi/", func(w http.ResponseWriter, r *http.Request) { h.API.Fail(w, r, sessions.Session{}, errUnknown) })
	return h
}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.mux.ServeHTTP(w, r)
}

// serve finds the session and the document of a request.
func (h *Handler) serve(f func(*call) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := r.URL.Query().Get("access_token"); token != "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+token)
		}
		session, err := h.API.IdentifyProgram(r, "wopi")
		c := &call{w: w, r: r, session: session, id: r.PathValue("id")}
		if err == nil {
			err = h.find(c)
		}
		if err == nil {
			err = f(c)
		}
		if err != nil {
			h.API.Fail(w, r, session, err)
		}
	})
}

// find finds the document. One that the session may not read is answered like one that does not exist.
func (h *Handler) find(c *call) error {
	if !document.IsID(c.id) {
		return errNoFile
	}
	err := h.API.May(c.session, locks.Document(c.id), policy.Read)
	if err != nil && httpapi.Status(err) == http.StatusForbidden {
		return errNoFile
	}
	if err != nil {
		return err
	}
	found, err := h.Contents.Find(c.r.Context(), c.id, "")
	if errors.Is(err, content.ErrNotFound) {
		return errNoFile
	}
	c.info = found.Info
	return err
}

const (
	versionHeader = "X-WOPI-ItemVersion"
	// timeFormat is ISO 8601 with the seven decimals of .NET.
	timeFormat = "2006-01-02T15:04:05.0000000Z"
)

// fileInfo is the reply of CheckFileInfo.
type fileInfo struct {
	BaseFileName               string
	OwnerID                    string `json:"OwnerId"`
	Size                       int
	Version                    string
	UserID                     string `json:"UserId"`
	UserFriendlyName           string
	IsAnonymousUser            bool
	LastModifiedTime           string
	UserCanWrite               bool
	ReadOnly                   bool
	UserCanNotWriteRelative    bool
	SupportsUpdate             bool
	SupportsLocks              bool
	SupportsGetLock            bool
	SupportsExtendedLockLength bool
}

// saved is the reply of PutFile.
type saved struct{ LastModifiedTime string }

func (h *Handler) checkFileInfo(c *call) error {
	path := document.Path(c.id)
	mayWrite := h.API.May(c.session, locks.Document(c.id), policy.Write) == nil
	httpapi.WriteJSON(c.w, http.StatusOK, fileInfo{
		BaseFileName: path[len(path)-1], OwnerID: "holdfast", Size: c.info.Size, Version: c.info.Generation,
		UserID: hex.EncodeToString([]byte(c.session.HolderID)), UserFriendlyName: c.session.Name, IsAnonymousUser: !c.session.User.SignedIn(),
		LastModifiedTime: c.info.SavedAt.UTC().Format(timeFormat),
		UserCanWrite:     mayWrite, ReadOnly: !mayWrite, UserCanNotWriteRelative: true,
		SupportsUpdate: true, SupportsLocks: true, SupportsGetLock: true, SupportsExtendedLockLength: true,
	})
	return nil
}

func (h *Handler) getFile(c *call) error {
	return h.API.ServeContent(c.w, c.r, c.id, func(info content.Info) error {
		if limit, err := strconv.ParseInt(c.r.Header.Get("X-WOPI-MaxExpectedSize"), 10, 64); err == nil && int64(info.Size) > limit {
			return errTooLarge
		}
		c.w.Header().Set(versionHeader, info.Generation)
		return nil
	})
}

// putFile saves. Without a lock, only an empty file may be written, which is how an office suite fills a new one.
func (h *Handler) putFile(c *call) error {
	if override := c.r.Header.Get("X-WOPI-Override"); override != "PUT" {
		return errUnknown
	}
	if err := h.API.May(c.session, locks.Document(c.id), policy.Write); err != nil {
		return err
	}
	if err := httpapi.CheckWholeBody(c.r); err != nil {
		return err
	}
	data, end, err := h.API.ReadContent(c.w, c.r, func() error { _, err := h.mayPut(c); return err })
	if err != nil {
		return err
	}
	defer end()
	now, err := h.mayPut(c)
	if err != nil {
		return err
	}
	expected := content.Expected(nil)
	if !now.held {
		if now.lease, err = h.acquire(c, h.LockTTL, noteChange, 0); err != nil {
			return h.denied(c, err)
		}
		defer h.API.Drop(c.r, now.lease)
		expected = empty
	}
	by := h.API.Writer(c.session, c.id)
	by.Holder = now.lease.Holder.ID
	info, err := h.Contents.Write(c.r.Context(), c.id, by, now.lease.Token, content.Save{}, expected, data)
	if errors.Is(err, locks.ErrStaleToken) || errors.Is(err, locks.ErrNotHolder) || errors.Is(err, content.ErrPrecondition) {
		return h.mismatchNow(c)
	}
	if err != nil {
		return err
	}
	c.w.Header().Set(versionHeader, info.Generation)
	httpapi.WriteJSON(c.w, http.StatusOK, saved{LastModifiedTime: info.SavedAt.UTC().Format(timeFormat)})
	return nil
}

// mayPut returns the lock under which a PutFile saves, if its client may write and has that lock or needs none.
func (h *Handler) mayPut(c *call) (now lockState, err error) {
	if err = h.API.May(c.session, locks.Document(c.id), policy.Write); err != nil {
		return now, err
	}
	if now, err = h.current(c); err != nil {
		return now, err
	}
	id := lockHeader(c.r)
	if now.ours && now.id == id || !now.held && id == "" && c.info.Size == 0 {
		return now, nil
	}
	return now, now.mismatch(c)
}

// empty is the expectation that a file is empty.
func empty(before content.Info) error {
	if before.Size != 0 {
		return content.ErrPrecondition
	}
	return nil
}

func lockHeader(r *http.Request) string { return strings.TrimSpace(r.Header.Get("X-WOPI-Lock")) }
