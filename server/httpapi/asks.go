package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/server/asks"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

const (
	defaultGrace = 5 * time.Second
	maxReason    = 1024 // bytes of a holder's reason for a refusal
)

// askBody is the body of a request for a handover; it may be absent.
type askBody struct {
	lockBody
	Name  *string `json:"name"` // the same as holder_name
	Grace *int64  `json:"grace_ms"`
}

// answerBody is the body of an answer; it may be absent. A refusal has Reason and Busy.
type answerBody struct {
	Ask    string `json:"ask_id"`
	Reason string `json:"reason"`
	Busy   bool   `json:"busy"`
}

// askForDocument asks the holder to hand over the lock.
func (a *API) askForDocument(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	var body askBody
	if err := a.readBody(w, r, &body, true); err != nil {
		return err
	}
	request, grace, err := a.askRequest(r, s, id, body)
	if err != nil {
		return err
	}
	ctx, end := a.waitingContext(r, grace+asks.AcceptLimit)
	defer end()
	lease, err := a.Asks.Ask(ctx, request, grace)
	var refused *asks.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Busy:
		return asks.ErrBusy
	case errors.As(err, &refused):
		writeJSON(w, http.StatusConflict, refusedReply{failure{false, "handover_refused", "The holder keeps the lock."}, refused.Reason})
		return nil
	case errors.As(err, new(*locks.DeniedError)):
		return asks.ErrTimeout
	case err != nil:
		return err
	}
	a.withdrawUnreceived(r, lease)
	if err := a.afterWait(r, s, request, lease); err != nil {
		return err
	}
	answer := granted(lease, request)
	answer.LeaseID = lease.ID
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// askRequest returns the request for the lock that a question makes, and the time that the holder has to answer.
func (a *API) askRequest(r *http.Request, s sessions.Session, id string, body askBody) (request locks.Request, grace time.Duration, err error) {
	query := r.URL.Query()
	name := body.HolderName
	if name == nil {
		name = body.Name
	}
	who, err := holder(s, name, query)
	if err != nil {
		return request, 0, err
	}
	grace = defaultGrace
	if body.Grace != nil {
		if grace, err = a.checkWait(*body.Grace); err != nil || grace == 0 {
			return request, 0, invalid("grace_ms is from 1 to " + millis(a.MaxWait) + ".")
		}
	}
	if request, err = a.documentRequest(id, who, query); err != nil {
		return request, 0, err
	}
	if err = a.mayLockWithin(s, &request); err != nil {
		return request, 0, err
	}
	err = a.own(r.Context(), s, &request)
	return request, grace, err
}

// acceptAsk records that the holder saves and then releases.
func (a *API) acceptAsk(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	by, _, err := a.readAnswer(w, r, s, id)
	if err != nil {
		return err
	}
	if err := a.Asks.Accept(r.Context(), by); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, done{true, "Save, then release the lock: the client that asked gets it."})
	return nil
}

// refuseAsk records that the holder keeps the lock.
func (a *API) refuseAsk(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	by, body, err := a.readAnswer(w, r, s, id)
	if err != nil {
		return err
	}
	if err := a.Asks.Refuse(r.Context(), by, body.Reason, body.Busy); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, done{true, "You keep the lock."})
	return nil
}

func (a *API) readAnswer(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) (by asks.Answer, body answerBody, err error) {
	if err = a.readBody(w, r, &body, true); err != nil {
		return by, body, err
	}
	if len(body.Reason) > maxReason {
		return by, body, invalid("reason has at most 1024 bytes.")
	}
	by = asks.Answer{Document: id, Ask: body.Ask}
	if by.Token, err = ownToken(r); err == nil {
		by.Holder, err = a.ownerAt(r.Context(), s, id)
	}
	return by, body, err
}
