package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

func (a *API) lockDocument(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	var body lockBody
	if err := a.readBody(w, r, &body, true); err != nil {
		return err
	}
	query := r.URL.Query()
	who, err := holder(s, body.HolderName, query)
	if err != nil {
		return err
	}
	wait, err := a.wait(query)
	if err != nil {
		return err
	}
	request, err := a.documentRequest(id, who, query)
	if err != nil {
		return err
	}
	request.Wait = wait
	if err := a.mayLockWithin(s, &request); err != nil {
		return err
	}
	lease, err := a.acquire(r, s, request)
	var denied *locks.DeniedError
	if errors.As(err, &denied) {
		writeJSON(w, http.StatusConflict, lockedAlready(denied, a.visible(denied, s)))
		return nil
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, granted(lease, request))
	return nil
}

// granted is the response with a grant.
func granted(lease locks.Lease, r locks.Request) grantReply {
	return grantReply{Success: true, LockedAt: events.Time(lease.LockedAt), ExpiresAt: events.Time(lease.ExpiresAt), Token: lease.Token, Ticket: r.Ticket}
}

// documentRequest reads the parameters of a request for a document's lock from the query.
func (a *API) documentRequest(id string, who locks.Holder, query url.Values) (r locks.Request, err error) {
	r = locks.Request{Paths: []locks.Path{locks.Document(id)}, Holder: who, TTL: a.LockTTL, Again: true,
		Fresh: query.Get("fresh") == "true", Ticket: query.Get("ticket"), Exact: query.Has("replace"),
		PassOn: query.Get("pass_on") == "true", Browser: query.Get("browser")}
	for _, text := range strings.FieldsFunc(query.Get("replace"), func(r rune) bool { return r == ',' }) {
		token, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return r, invalid("replace is a list of tokens, with commas between them; it may be empty.")
		}
		r.Replace = append(r.Replace, token)
	}
	return r, nil
}

// acquire asks the table. It withdraws a grant that arrives after the client has gone.
func (a *API) acquire(r *http.Request, s sessions.Session, request locks.Request) (lease locks.Lease, err error) {
	if err = a.own(r.Context(), s, &request); err != nil {
		return lease, err
	}
	ctx, end := a.waitingContext(r, request.Wait)
	defer end()
	lease, err = a.Locks.Acquire(ctx, request)
	if err == nil && (request.Wait > 0 || request.Fresh || request.Ticket != "") {
		a.withdrawUnreceived(r, lease)
	}
	if err == nil && request.Wait > 0 {
		err = a.afterWait(r, s, request, lease)
	}
	return lease, err
}

// waitingContext returns the context of a request that may wait. A server that stops does not make it wait.
func (a *API) waitingContext(r *http.Request, wait time.Duration) (context.Context, func()) {
	if wait == 0 {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	forget := context.AfterFunc(a.drain, cancel)
	return ctx, func() { forget(); cancel() }
}

// withdrawUnreceived releases a lease that was granted after the client had gone.
func (a *API) withdrawUnreceived(r *http.Request, lease locks.Lease) {
	if r.Context().Err() != nil {
		a.withdraw(r, lease)
	}
}

// withdraw releases a lease that its client does not get.
func (a *API) withdraw(r *http.Request, lease locks.Lease) {
	ctx, cancel := a.detached(r)
	defer cancel()
	_ = a.Locks.Withdraw(ctx, lease)
}

// lockedAlready refuses a document's lock. visible are the holders that the session may see.
func lockedAlready(denied *locks.DeniedError, visible []locks.Lease) alreadyLocked {
	reply := alreadyLocked{failure: failure{false, "already_locked", "Others wait for this document and come first."}}
	switch {
	case len(visible) > 0:
		holder := public(visible[0])
		reply.publicLease, reply.Message = &holder, holder.HolderName+" is editing this document."
	case len(denied.Holders) > 0:
		reply.Message = "Somebody holds a lock in the way."
	}
	return reply
}

func (a *API) renewDocument(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	token, err := ownToken(r)
	if err != nil {
		return err
	}
	owner, err := a.ownerAt(r.Context(), s, id)
	if err != nil {
		return err
	}
	lease, err := a.Locks.RenewAt(r.Context(), locks.Document(id), owner, token)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, renewal{true, events.Time(lease.ExpiresAt)})
	return nil
}

func (a *API) unlockDocument(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	token, err := ownToken(r)
	if err != nil {
		return err
	}
	ctx, cancel := a.detached(r)
	defer cancel()
	owner, err := a.ownerAt(ctx, s, id)
	if err != nil {
		return err
	}
	if err := a.Locks.ReleaseAt(ctx, locks.Document(id), owner, token); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, done{true, "You hold no lock on this document now."})
	return nil
}

func (a *API) showDocument(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	list, revision, err := a.Locks.Blocking(r.Context(), locks.Document(id))
	var lease locks.Lease
	if len(list) > 0 {
		lease = list[0]
	}
	if err == nil && lease.Token != 0 && len(a.readable(s, lease.Paths)) == 0 {
		lease, err = a.readableLock(r.Context(), s, locks.Document(id))
	}
	if err != nil {
		return err
	}
	// A client that opens the events with ?after= misses nothing in between.
	w.Header().Set(revisionHeader, strconv.FormatInt(revision, 10))
	if lease.Token == 0 {
		writeJSON(w, http.StatusOK, noLock{})
		return nil
	}
	reply := documentLock{noLock: noLock{true}, publicLease: public(lease), IsMyLock: s.Owns(lease.Holder.ID), Token: lease.Token}
	if !lease.Records(locks.Document(id)) {
		reply.Paths, reply.Mode = a.readable(s, lease.Paths), lease.Mode
	}
	if len(list) > 1 {
		hidden := func(l locks.Lease) bool { return len(a.readable(s, l.Paths)) == 0 }
		reply.Holders = a.holders(short(slices.DeleteFunc(list, hidden)), s)
	}
	writeJSON(w, http.StatusOK, reply)
	return nil
}

// ownToken reads the optional token of a heartbeat or release. A request with a token concerns only the lock of its own
// tab, not a lock that another tab of the same session holds by now.
func ownToken(r *http.Request) (int64, error) {
	if r.Header.Get(tokenHeader) == "" {
		return 0, nil
	}
	return readToken(r)
}

func readToken(r *http.Request) (int64, error) {
	token, err := strconv.ParseInt(r.Header.Get(tokenHeader), 10, 64)
	if err != nil || token <= 0 {
		return 0, invalid("The header Holdfast-Token must be the token of your lock.")
	}
	return token, nil
}

func (a *API) writeContent(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	token, err := readToken(r)
	if err != nil {
		return err
	}
	if err := CheckWholeBody(r); err != nil {
		return err
	}
	save, err := readSave(r)
	if err != nil {
		return err
	}
	owner, err := a.ownerAt(r.Context(), s, id)
	if err != nil {
		return err
	}
	data, end, err := a.ReadContent(w, r, func() error {
		_, err := a.Locks.Fence(r.Context(), locks.Document(id), owner, token)
		return err
	})
	if err != nil {
		return err
	}
	defer end()
	if err := a.may(s, locks.Document(id), policy.Write); err != nil {
		return err // the right may have ended while the body arrived
	}
	info, err := a.Contents.Write(r.Context(), id, a.writer(s, id, owner), token, save, expected(r), data)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, savedReply{true, info.ETag, events.Time(info.SavedAt)})
	return nil
}

// readSave reads which save a write belongs to. Both headers may be absent.
func readSave(r *http.Request) (save content.Save, err error) {
	if text := r.Header.Get(saveHeader); text != "" {
		var ok bool
		if save, ok = content.ParseSave(text); !ok {
			return save, invalid("The header Holdfast-Save is a draft's id, a slash and a number: 1 to 64 letters, digits, - and _, then 0 or more.")
		}
	}
	if text := r.Header.Get(orderHeader); text != "" {
		if save.Order, err = strconv.ParseInt(text, 10, 64); err != nil || save.Order < 1 {
			return save, invalid("The header Holdfast-Order is a number from 1 that grows with every write under one token.")
		}
	}
	return save, nil
}
