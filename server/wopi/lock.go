package wopi

import (
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

const (
	// noteLock begins the note of a lock of WOPI; its id follows. noteChange is the note of a lock that a PutFile takes for
	// itself.
	noteLock, noteChange = "wopi ", "wopi-change"
	// lockTTL is how long a lock lasts without a RefreshLock, as the protocol says.
	lockTTL = 30 * time.Minute
	// maxLockID is the maximum length of a lock's id. An id that is not UTF-8 would be stored as another one.
	maxLockID = 1024
	// relockWait is how long the new lock of UnlockAndRelock may wait for the end of the old one.
	relockWait = 5 * time.Second
	lockName   = "X-WOPI-Lock"
)

var errLockID = httpapi.Refusal(http.StatusBadRequest, "invalid_request", "The header X-WOPI-Lock must be the id of the lock, 1 to 1024 characters.")

// change serves the operations that the header X-WOPI-Override names.
func (h *Handler) change(c *call) error {
	if c.r.Header.Get("X-WOPI-Override") == "GET_LOCK" {
		return h.getLock(c)
	}
	operation := map[string]func(*call, string) error{
		"LOCK": h.lock, "REFRESH_LOCK": h.refreshLock, "UNLOCK": h.unlock,
	}[c.r.Header.Get("X-WOPI-Override")]
	if operation == nil {
		return errUnknown
	}
	if err := h.API.May(c.session, locks.Document(c.id), policy.Lock); err != nil {
		return err
	}
	id := lockHeader(c.r)
	if id == "" || len(id) > maxLockID || !utf8.ValidString(id) || len(c.r.Header.Get("X-WOPI-OldLock")) > maxLockID {
		return errLockID
	}
	return operation(c, id)
}

// lockState is the present lock of a document.
type lockState struct {
	held  bool
	ours  bool // it is a lock of WOPI
	id    string
	lease locks.Lease
}

func (h *Handler) current(c *call) (now lockState, err error) {
	lease, _, err := h.Locks.At(c.r.Context(), locks.Document(c.id))
	if err != nil || lease.Token == 0 {
		return now, err
	}
	now.held, now.lease = true, lease
	if id, ours := strings.CutPrefix(lease.Note, noteLock); ours && lease.Holder.ID == holderID(c.id) {
		now.id, now.ours = id, true
	}
	return now, nil
}

// holderID is the holder of a document's lock. No secret of a client leads to it, because none begins with a line break.
func holderID(document string) string { return sessions.HolderID("\nwopi\n" + document) }

// mismatch responds that another lock is in the way. The response has the id of that lock, or an empty id if it is no lock of WOPI.
func (s lockState) mismatch(c *call) error {
	c.w.Header().Set(lockName, s.id)
	message := "The file is not locked with this id."
	if s.held && !s.ours {
		message = s.lease.Holder.Name + " is editing this file in another program."
		c.w.Header().Set("X-WOPI-LockFailureReason", "locked by another program")
	}
	return httpapi.Refusal(http.StatusConflict, "lock_mismatch", message)
}

// mismatchNow reads the document's present lock, and responds as mismatch does.
func (h *Handler) mismatchNow(c *call) error {
	now, err := h.current(c)
	if err != nil {
		return err
	}
	return now.mismatch(c)
}

// denied translates the error of an acquisition.
func (h *Handler) denied(c *call, err error) error {
	var denied *locks.DeniedError
	var left *locks.LeftError
	if errors.As(err, &denied) || errors.As(err, &left) {
		return h.mismatchNow(c)
	}
	return err
}

func (h *Handler) done(c *call) error {
	c.w.Header().Set(versionHeader, c.info.Generation)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

func (h *Handler) getLock(c *call) error {
	now, err := h.current(c)
	if err != nil {
		return err
	}
	if now.held && !now.ours {
		return now.mismatch(c)
	}
	c.w.Header().Set(lockName, now.id)
	return h.done(c)
}

// lock locks, or extends the lock with the same id. With X-WOPI-OldLock it puts a new lock in the place of the old one.
func (h *Handler) lock(c *call, id string) error {
	old := strings.TrimSpace(c.r.Header.Get("X-WOPI-OldLock"))
	if old != "" {
		return h.relock(c, old, id)
	}
	for {
		now, err := h.current(c)
		if err != nil {
			return err
		}
		if now.held {
			return h.extend(c, now, id)
		}
		lease, err := h.acquire(c, lockTTL, noteLock+id, 0)
		var denied *locks.DeniedError
		if errors.As(err, &denied) && len(denied.Holders) > 0 && c.r.Context().Err() == nil {
			continue // perhaps the same id has just locked it
		}
		if err != nil {
			return h.denied(c, err)
		}
		if err := h.granted(c); err != nil {
			h.API.Drop(c.r, lease)
			return err
		}
		return nil
	}
}

// granted responds with the version that a new lock protects. Somebody may have saved, or deleted the file, since the request came.
func (h *Handler) granted(c *call) error {
	if err := h.find(c); err != nil {
		return err
	}
	return h.done(c)
}

// acquire acquires the document's lock. If replaced is a token, the lock with it ends and hands over to the new one.
func (h *Handler) acquire(c *call, ttl time.Duration, note string, replaced int64) (locks.Lease, error) {
	request := locks.Request{Paths: []locks.Path{locks.Document(c.id)}, TTL: ttl, Note: note}
	if replaced != 0 {
		request.Exact, request.Replace, request.PassOn, request.Wait = true, []int64{replaced}, true, relockWait
	}
	var err error
	if request.Holder, err = httpapi.Holder(c.session, ""); err != nil {
		return locks.Lease{}, err
	}
	request.Holder.ID = holderID(c.id)
	if err := h.API.MayLock(c.session, &request); err != nil {
		return locks.Lease{}, err
	}
	return h.Locks.Acquire(c.r.Context(), request)
}

func (h *Handler) relock(c *call, old, id string) error {
	now, err := h.current(c)
	if err != nil {
		return err
	}
	if !now.ours || now.id != old {
		return now.mismatch(c)
	}
	lease, err := h.acquire(c, lockTTL, noteLock+id, now.lease.Token)
	if err != nil {
		return h.denied(c, err)
	}
	err = h.granted(c)
	if errors.Is(err, errNoFile) { // after another error the lock stays, because its users edit the file
		h.API.Drop(c.r, lease)
	}
	return err
}

func (h *Handler) refreshLock(c *call, id string) error {
	now, err := h.current(c)
	if err != nil {
		return err
	}
	return h.extend(c, now, id)
}

// extend extends a lock that has the id.
func (h *Handler) extend(c *call, now lockState, id string) error {
	if !now.ours || now.id != id {
		return now.mismatch(c)
	}
	_, err := h.Locks.Renew(c.r.Context(), now.lease.ID, now.lease.Holder.ID)
	if errors.Is(err, locks.ErrNotFound) {
		return lockState{}.mismatch(c)
	}
	if err != nil {
		return err
	}
	return h.done(c)
}

func (h *Handler) unlock(c *call, id string) error {
	now, err := h.current(c)
	if err != nil {
		return err
	}
	if !now.ours || now.id != id {
		return now.mismatch(c)
	}
	if err := h.API.Release(c.r, now.lease); err != nil {
		return err
	}
	return h.done(c)
}
