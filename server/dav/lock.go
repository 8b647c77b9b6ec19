package dav

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

const (
	// sharers is the number of programs that may share a lock: the slots of its place.
	sharers = 100
	// defaultTimeout is for a program that states none. It is bounded by minTimeout and maxTimeout.
	defaultTimeout, minTimeout, maxTimeout = 10 * time.Minute, time.Second, time.Hour
	// maxOwner is the maximum size of the XML with which a program describes the owner of its lock, in bytes.
	maxOwner = 2 << 10
)

var (
	errDepth     = httpapi.Refusal(http.StatusBadRequest, "invalid_request", "This method does not take this Depth.")
	errRefresh   = httpapi.Refusal(http.StatusBadRequest, "invalid_request", "A LOCK without a body needs the token of one lock in the header If.")
	errLockToken = httpapi.Refusal(http.StatusBadRequest, "invalid_request", "UNLOCK needs the header Lock-Token: <token>.")
	errOwner     = httpapi.Refusal(http.StatusBadRequest, "invalid_request", "The owner in the body is too long.")
	errNotOwner  = httpapi.Refusal(http.StatusForbidden, "not_locked_by_user", "You do not hold this lock.")
	errNoLock    = &davError{http.StatusConflict, "lock-token-matches-request-uri", nil}
)

// tokenOf returns the token of a lock: the lease's name in the form of a UUID of version 8 (RFC 9562).
func tokenOf(l locks.Lease) string {
	name, _, _ := strings.Cut(l.ID, ".")
	b, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil || len(b) != 12 {
		return ""
	}
	return fmt.Sprintf("urn:uuid:%x-%x-8000-8000-%x", b[:4], b[4:6], b[6:])
}

// lockInfo is the body of LOCK.
type lockInfo struct {
	shared bool
	owner  element
}

func readLockInfo(body *element) (info lockInfo, err error) {
	scope, _ := body.child("lockscope")
	kind, _ := body.child("locktype")
	_, exclusive := scope.child("exclusive")
	_, info.shared = scope.child("shared")
	_, write := kind.child("write")
	info.owner, _ = body.child("owner")
	if exclusive == info.shared || !write {
		return info, errXML
	}
	if len(inner(info.owner)) > maxOwner {
		return info, errOwner
	}
	return info, nil
}

// depth reads the header Depth: 0, 1, or -1 for infinity, which is also the default.
func depth(r *http.Request) (int, error) {
	switch text := r.Header.Get("Depth"); {
	case text == "" || strings.EqualFold(text, "infinity"):
		return -1, nil
	case text == "0" || text == "1":
		return int(text[0] - '0'), nil
	}
	return 0, errDepth
}

// timeout reads the header Timeout (RFC 4918, section 10.7) and takes the first value that it understands.
func timeout(r *http.Request) time.Duration {
	for _, item := range strings.Split(r.Header.Get("Timeout"), ",") {
		item = strings.TrimSpace(item)
		if strings.EqualFold(item, "Infinite") {
			return maxTimeout
		}
		if len(item) > 7 && strings.EqualFold(item[:7], "Second-") {
			if n, err := strconv.ParseUint(item[7:], 10, 32); err == nil {
				return min(max(time.Duration(n)*time.Second, minTimeout), maxTimeout)
			}
		}
	}
	return defaultTimeout
}

func (h *Handler) lock(c *call) error {
	body, err := h.readXML(c, "lockinfo")
	if err != nil {
		return err
	}
	deep, err := depth(c.r)
	if err != nil || deep == 1 {
		return errDepth
	}
	if body == nil {
		return h.refresh(c)
	}
	info, err := readLockInfo(body)
	if err != nil {
		return err
	}
	lease, n, err := h.lockNode(c, info, deep)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if n.kind == missing {
		if err := h.create(c, lease); err != nil {
			return err
		}
		status, n.kind = http.StatusCreated, file
	}
	h.API.WithdrawUnreceived(c.r, lease) // otherwise it would block everybody for its long TTL
	c.w.Header().Set("Lock-Token", "<"+tokenOf(lease)+">")
	h.answerLock(c, n, lease, status)
	return nil
}

// lockNode acquires the lock that a program describes, and returns the node that it is on. If the request waited for another
// change and the node is of another kind now, it needs another lock.
func (h *Handler) lockNode(c *call, info lockInfo, deep int) (locks.Lease, node, error) {
	for {
		before, err := h.mayLock(c)
		if err != nil {
			return locks.Lease{}, before, err
		}
		request, err := h.lockRequest(c, before, info, deep)
		if err != nil {
			return locks.Lease{}, before, err
		}
		lease, err := h.acquire(c.r.Context(), request)
		if holders, ok := deniedBy(err); ok {
			err = &davError{http.StatusLocked, "no-conflicting-lock", h.roots(c.session, before.place, holders)}
		}
		if err != nil {
			return lease, before, err
		}
		if before.kind == collection && deep == 0 {
			err = h.awaitMembers(c, before, lease)
		}
		n := before
		if err == nil {
			n, err = h.mayLock(c)
		}
		if err == nil && n.kind == before.kind {
			return lease, n, nil
		}
		h.API.Drop(c.r, lease)
		if err != nil {
			return lease, n, err
		}
	}
}

// awaitMembers waits for the changes of members that had begun when the members were locked. That lock does not exclude them, and they go
// on, see [right.checkMembers], so the program gets the lock when they are over.
func (h *Handler) awaitMembers(c *call, n node, lock locks.Lease) error {
	for until := time.Now().Add(min(changeWait, time.Until(lock.ExpiresAt)/2)); ; {
		leases, err := h.leases(c.r.Context(), n.path())
		if err != nil {
			return err
		}
		changes := slices.DeleteFunc(leases, func(l locks.Lease) bool {
			return lasting(l) || l.Token > lock.Token || len(l.Paths[0]) != len(n.members()) // of no member
		})
		if len(changes) == 0 {
			return nil
		}
		if time.Now().After(until) {
			return &davError{http.StatusLocked, "no-conflicting-lock", h.roots(c.session, n.place, changes)}
		}
		if err := wait.For(c.r.Context(), 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// mayLock finds what is at the place of a LOCK, and checks that the lock is possible there.
func (h *Handler) mayLock(c *call) (node, error) {
	n, err := h.look(c.r.Context(), c.session, c.place)
	if err == nil && n.kind == missing {
		err = h.mayCreate(c)
	}
	if err == nil {
		err = c.expected()(n.info)
	}
	return n, err
}

// lockRequest returns the request for the lock that a program describes, if the program may have it.
func (h *Handler) lockRequest(c *call, n node, info lockInfo, deep int) (request locks.Request, err error) {
	request = locks.Request{Paths: []locks.Path{n.path()}, TTL: timeout(c.r), Note: noteOwn + inner(info.owner)}
	if n.kind == collection && deep == 0 {
		request.Paths[0] = n.members()
	}
	if info.shared {
		request.Slots = sharers
	}
	if request.Holder, err = httpapi.Holder(c.session, ownerName(info.owner)); err != nil {
		return request, err
	}
	err = h.API.MayLock(c.session, &request) // it may change the request
	return request, err
}

// mayCreate checks that a program may make a document at the place of the request.
func (h *Handler) mayCreate(c *call) error {
	if strings.HasSuffix(c.r.URL.EscapedPath(), "/") {
		return errNoParent // a collection is made by MKCOL
	}
	if err := h.API.May(c.session, c.place.path(), policy.Write); err != nil {
		return err
	}
	return h.hasParent(c, c.place)
}

// create makes the empty document of a lock on a name that had none (RFC 4918, section 7.3).
func (h *Handler) create(c *call, lease locks.Lease) error {
	g := &right{Handler: h, call: c, place: c.place, scope: theEntry, lease: lease}
	_, err := h.Contents.WriteUnder(c.r.Context(), c.place.id(), g.content(), content.Save{}, absent, nil)
	if errors.Is(err, content.ErrPrecondition) {
		return nil // somebody has just saved it
	}
	if err != nil {
		g.own = true
		g.end()
	}
	return err
}

// absent is the expectation that a document has no content.
func absent(before content.Info) error {
	if before.ETag != "" {
		return content.ErrPrecondition
	}
	return nil
}

// refresh extends a lock.
func (h *Handler) refresh(c *call) error {
	if len(c.submitted) != 1 {
		return errRefresh
	}
	leases, err := h.leasesOver(c.r.Context(), c.place)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(leases, func(l locks.Lease) bool { return owned(c.session, c.submitted, l) })
	if i < 0 {
		return errIfFailed
	}
	lease := leases[i]
	n, err := h.look(c.r.Context(), c.session, c.place)
	if err != nil {
		return err
	}
	if err := h.API.MayRenew(c.session, lease); err != nil {
		return err
	}
	lease.ExpiresAt, err = h.Locks.Renew(c.r.Context(), lease.ID, lease.Holder.ID)
	if errors.Is(err, locks.ErrNotFound) {
		return errIfFailed
	}
	if err != nil {
		return err
	}
	h.answerLock(c, n, lease, http.StatusOK)
	return nil
}

// answerLock responds with the property lockdiscovery, which describes the lock.
func (h *Handler) answerLock(c *call, n node, lease locks.Lease, status int) {
	x := newXML()
	x.open("prop")
	x.property(xml.Name{Space: davSpace, Local: "lockdiscovery"}, "", h.discovery(c.session, n, []locks.Lease{lease}))
	x.close("prop")
	x.send(c.w, status)
}

func (h *Handler) unlock(c *call) error {
	token := strings.TrimSpace(c.r.Header.Get("Lock-Token"))
	if len(token) < 3 || token[0] != '<' || token[len(token)-1] != '>' {
		return errLockToken
	}
	leases, err := h.leasesOver(c.r.Context(), c.place)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(leases, func(l locks.Lease) bool { return tokenOf(l) == token[1:len(token)-1] })
	if i < 0 || !h.API.MayRead(c.session, leases[i].Paths) {
		return errNoLock
	}
	if !c.session.Owns(leases[i].Holder.ID) {
		return errNotOwner
	}
	if err := h.API.Release(c.r, leases[i]); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// ownerName is the text of an owner's XML, as the name of the lock's holder.
func ownerName(owner element) string {
	var b strings.Builder
	var collect func(element)
	collect = func(e element) {
		b.WriteString(e.text)
		for _, c := range e.children {
			collect(c)
		}
	}
	collect(owner)
	return sessions.Clean(b.String())
}
