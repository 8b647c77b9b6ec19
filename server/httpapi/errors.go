package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/server/asks"
	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// apiError is an error of the API.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return e.message }

// isFailure reports whether the operator should know of it: not if the server stops, or if a client asks for an operation that does not exist,
// for a copy to another server, or for more than it may have.
func (e *apiError) isFailure() bool {
	switch e.status {
	case http.StatusNotImplemented, http.StatusBadGateway:
		return false
	case http.StatusInsufficientStorage:
		return e == errFull || e == errMaybeFull
	}
	return e.status >= 500 && e != errStopping
}

type rateError struct{ after int }

func (e *rateError) Error() string { return "Too many requests." }

var (
	errOrigin      = &apiError{http.StatusForbidden, "forbidden_origin", "This origin may not use the API; see --origin."}
	errUnavailable = &apiError{http.StatusServiceUnavailable, "unavailable", "The store does not answer. Try again."}
	errStopping    = &apiError{http.StatusServiceUnavailable, "unavailable", "The server is stopping. Try again."}
	errFull        = &apiError{http.StatusInsufficientStorage, "store_full", "The server has no space for it. Nothing was written; locks go on."}
	errMaybeFull   = &apiError{http.StatusInsufficientStorage, "store_full", "The server has no space for it. It may have been written nevertheless; locks go on."}
	errMethod      = &apiError{http.StatusMethodNotAllowed, "method_not_allowed", "This path has no such method."}
	errInternal    = &apiError{http.StatusInternalServerError, "internal_error", "Something went wrong in the server."}
	errHandshake   = &apiError{http.StatusBadRequest, "invalid_request", "This is no handshake of a WebSocket of version 13 (RFC 6455)."}
	errUpgrade     = &apiError{http.StatusUpgradeRequired, "upgrade_required", "Events are a WebSocket."}
	errDocumentID  = &apiError{http.StatusBadRequest, "invalid_request",
		`A document's id has 1 to 128 characters of A-Z a-z 0-9 . _ ~ - and is not "." or "..".`}
	errPart    = &apiError{http.StatusBadRequest, "invalid_request", "A file or a content is written as a whole, without Content-Range."}
	errEncoded = &apiError{http.StatusUnsupportedMediaType, "unsupported_encoding",
		"A file or a content is written as it is, without Content-Encoding."}
	errLockAll   = &apiError{http.StatusForbidden, "not_allowed", "Locking all documents at once is not allowed; see --lock-all."}
	errNoSession = &apiError{http.StatusConflict, "no_session",
		"This request bore no session, so nothing was locked. The answer sets the session's cookie: send the request again with it."}
	errHost     = &apiError{http.StatusMisdirectedRequest, "wrong_host", "This server does not serve that host; see --host."}
	errTooLarge = &apiError{http.StatusRequestEntityTooLarge, "too_large", "The body is too large."}
)

func invalid(message string) error {
	return &apiError{http.StatusBadRequest, "invalid_request", message}
}

// translate maps the errors of the packages behind the API to errors of the API.
func translate(err error) *apiError {
	var known *apiError
	var wrong *locks.InvalidError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &wrong), errors.Is(err, sessions.ErrTooLong):
		return &apiError{http.StatusBadRequest, "invalid_request", sentence(err)}
	case errors.As(err, &large):
		return errTooLarge
	case errors.Is(err, locks.ErrNotFound):
		return &apiError{http.StatusNotFound, "lock_not_found", "There is no such lock: it was released or has expired."}
	case errors.Is(err, locks.ErrNotHolder):
		return &apiError{http.StatusForbidden, "not_locked_by_user", "You do not hold this lock."}
	case errors.Is(err, locks.ErrStaleToken):
		return &apiError{http.StatusConflict, "stale_token", "The lock of this token has ended. Nothing was written."}
	case errors.Is(err, content.ErrStaleSave):
		return &apiError{http.StatusConflict, "stale_save", "A later save of this lock is stored. Nothing was written."}
	case errors.Is(err, asks.ErrBusy):
		return &apiError{http.StatusConflict, "handover_busy", "Somebody else has asked for this lock already."}
	case errors.Is(err, asks.ErrTimeout):
		return &apiError{http.StatusRequestTimeout, "handover_timeout", "The holder did not pass the lock on in time."}
	case errors.Is(err, asks.ErrNotAsked):
		return &apiError{http.StatusNotFound, "ask_not_found", "Nobody asks for this lock now."}
	case errors.Is(err, locks.ErrDeadlock):
		return &apiError{http.StatusConflict, "deadlock", "Waiting would never end: the holder waits for you."}
	case errors.Is(err, locks.ErrReplaced):
		return &apiError{http.StatusConflict, "replaced", "A later request has come with this ticket. Ask again if you still wait."}
	case errors.Is(err, locks.ErrGivenUp):
		return &apiError{http.StatusConflict, "given_up", "The acquisition of this ticket has ended. Choose a new ticket for another one."}
	case errors.Is(err, locks.ErrTooMany), errors.Is(err, locks.ErrTooManyOfUser), errors.Is(err, locks.ErrTooManyTickets):
		return &apiError{http.StatusTooManyRequests, "too_many_locks", sentence(err)}
	case errors.Is(err, content.ErrNotFound):
		return &apiError{http.StatusNotFound, "document_not_found", "The document has no such content."}
	case errors.Is(err, content.ErrPrecondition):
		return &apiError{http.StatusPreconditionFailed, "precondition_failed", "The document has another content than you expect."}
	case errors.Is(err, content.ErrTooMany):
		return &apiError{http.StatusInsufficientStorage, "too_many_documents", "You have made as many documents as you may. Nothing was written."}
	case errors.Is(err, blobs.ErrFull), errors.Is(err, kv.ErrReserved):
		return errFull
	case errors.Is(err, kv.ErrFull):
		return errMaybeFull
	case errors.Is(err, kv.ErrUnavailable), errors.Is(err, blobs.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return errUnavailable
	}
	return nil
}

// RequestHeader has the id of a request in the response, if the server logs requests.
const RequestHeader = "X-Request-Id"

// clearHeader removes the description of a content that is not sent. The headers for every response stay, as those of CORS.
func clearHeader(h http.Header) {
	for _, name := range []string{"ETag", tokenHeader, saveHeader, generationHeader, savedAtHeader, "Last-Modified", "Content-Type",
		"Content-Disposition", "Content-Security-Policy", "Accept-Ranges", "Content-Range", "Content-Length"} {
		h.Del(name)
	}
}

// fail responds with an error.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) {
		err = errStopping // or nobody listens any more; without a response it would be 200
	}
	var left *locks.LeftError
	if errors.As(err, &left) {
		writeJSON(w, http.StatusConflict, leftBehind{failure{false, "left_behind",
			"A tab of this browser that is gone holds a lock in the way. Name its token in replace."}, left.Tokens})
		return
	}
	var limited *rateError
	if errors.As(err, &limited) {
		w.Header().Set("Retry-After", strconv.Itoa(limited.after))
		writeError(w, &apiError{http.StatusTooManyRequests, "rate_limited", "Too many requests. Slow down."})
		return
	}
	known := translate(err)
	if known == nil {
		known = errInternal
	}
	if known.isFailure() && r.Context().Err() == nil {
		a.Log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "request", w.Header().Get(RequestHeader), "error", err)
	}
	writeError(w, known)
}

func writeError(w http.ResponseWriter, e *apiError) {
	writeJSON(w, e.status, failure{false, e.code, e.message})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Errorf("an answer cannot be encoded: %w", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that does not read has gone
}

// plainErrors makes the router's own 404 and 405 look like all other errors.
func plainErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for part := range strings.SplitSeq(r.URL.Path, "/") {
			if part == "." || part == ".." {
				writeError(w, errDocumentID) // the router would redirect the client
				return
			}
		}
		handler, pattern := mux.Handler(r)
		if pattern != "" && !strings.Contains(r.URL.EscapedPath(), "//") { // the router would redirect, and a document without an id has no calls
			mux.ServeHTTP(w, r)
			return
		}
		probe := &probe{header: http.Header{}, status: http.StatusNotFound}
		handler.ServeHTTP(probe, r)
		if probe.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", probe.header.Get("Allow"))
			writeError(w, errMethod)
			return
		}
		writeError(w, &apiError{http.StatusNotFound, "not_found", "There is nothing here."})
	})
}

// probe records a response that is not sent.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header            { return p.header }
func (p *probe) Write(text []byte) (int, error) { return len(text), nil }
func (p *probe) WriteHeader(status int)         { p.status = status }

// sentence makes a sentence of an error's text.
func sentence(err error) string {
	text := err.Error()
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
