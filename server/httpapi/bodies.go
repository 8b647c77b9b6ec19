package httpapi

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// bodiesAtOnce is how many large bodies of one address the server has in memory at once. A body is large above maxBody.
const bodiesAtOnce = 32

const (
	// smallAtOnce is how many other bodies of one address the server has in memory at once. Those up to tinyBody do not count.
	smallAtOnce, tinyBody = 2048, 4 << 10

	// turnsAtOnce is how many requests of one address may use much memory at once, up to 128 MiB each, or read many past events.
	turnsAtOnce = 4
	// signInsAtOnce is how many requests of one address may have the server ask the provider where users sign in. Each is an open file, and
	// many users may be behind one address.
	signInsAtOnce = 32
	// turnWait is how long a request waits for that.
	turnWait = 5 * time.Second
)

// ReadContent reads the body of a write. A large body is read only if may returns no error and if the address has not too
// many such bodies in memory. The caller calls end when it no longer needs the bytes.
func (a *API) ReadContent(w http.ResponseWriter, r *http.Request, may func() error) (data []byte, end func(), err error) {
	if r.ContentLength > a.MaxContent {
		return nil, nil, errTooLarge
	}
	if r.ContentLength < 0 || r.ContentLength > maxBody {
		if err = may(); err == nil {
			end, err = begin(&a.bodies, a.network(r), bodiesAtOnce)
		}
	} else {
		end, err = a.beginSmall(r)
	}
	if err != nil {
		return nil, nil, err
	}
	if data, err = a.readAll(w, r, a.MaxContent); err != nil {
		end()
		return nil, nil, err
	}
	return data, end, nil
}

// ReadSmall reads a body of up to 64 KiB.
func (a *API) ReadSmall(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	end, err := a.beginSmall(r)
	if err != nil {
		return nil, err
	}
	defer end()
	return a.readAll(w, r, maxBody)
}

// readAll reads a body that is no longer than a limit.
func (a *API) readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, bodyError(err)
	}
	return data, nil
}

// beginSmall counts a body up to maxBody until end. The caller has not begun to read it.
func (a *API) beginSmall(r *http.Request) (end func(), err error) {
	if r.ContentLength >= 0 && r.ContentLength <= tinyBody {
		return func() {}, nil
	}
	return begin(&a.small, a.network(r), smallAtOnce)
}

func begin(c *counts, address string, limit int) (end func(), err error) {
	end, ok := c.begin(address, limit)
	if !ok {
		return nil, &rateError{1}
	}
	return end, nil
}

// TakeMemory waits until the request may use much memory besides its body. The caller calls end afterwards.
func (a *API) TakeMemory(r *http.Request) (end func(), err error) {
	return a.takeTurn(r, &a.memory, turnsAtOnce)
}

// TakeCopy waits until the request may copy contents. Copies have turns of their own, because one may take an hour. The caller calls end
// afterwards.
func (a *API) TakeCopy(r *http.Request) (end func(), err error) {
	return a.takeTurn(r, &a.copies, turnsAtOnce)
}

// takeTurn waits for one of the turns of the request's address. A request that waits for turnWait fails.
func (a *API) takeTurn(r *http.Request, of *turns, limit int) (end func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), turnWait)
	defer cancel()
	end, ok := of.take(ctx, a.network(r), limit)
	if ok {
		return sync.OnceFunc(end), nil
	}
	if r.Context().Err() != nil {
		return nil, context.Cause(r.Context())
	}
	return nil, &rateError{1}
}

// maxRest is how many bytes of a body that nobody wants the server reads at least before it cuts the connection. The time limit of a request
// ends a body that arrives slowly.
const maxRest = 64 << 20

// workLimit is how long a change may take until its response begins.
const workLimit = time.Hour

// EnsureResponse returns a handler whose clients get the response of next, however long they send and however long next works.
//
// It reads what next has not read of the body, without keeping it. Many clients read no response before they have sent everything, and would
// find only that the connection was reset. The response has not been sent by then if it is short, as that to a refused request is.
//
// The time for the response to a change begins with the response. The listener's began with the request, and for example the copy of a
// collection over WebDAV takes longer, up to workLimit. HTTP/2 would end the request with its time, even before anything is written.
func (a *API) EnsureResponse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			a.readRest(next, w, w, r)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(workLimit))
		a.readRest(next, w, &lateWriter{ResponseWriter: w, api: a}, r)
		a.beginResponse(w) // if the response is empty
	})
}

// readRest calls next with a writer over w, and reads the rest of the body. A request for a socket may state a body, too, but the socket
// reads the same buffer, also while it ends.
func (a *API) readRest(next http.Handler, w, respond http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.Method == http.MethodGet && r.Header.Get("Upgrade") != "" {
		next.ServeHTTP(respond, r)
		return
	}
	begun := &begunBody{ReadCloser: r.Body}
	seen := r.WithContext(r.Context())
	seen.Body = begun
	next.ServeHTTP(respond, seen)
	// A client that waits for a first response has sent nothing. A body that is known to be too long is not read.
	if limit := max(maxRest, a.MaxContent); r.ContentLength <= limit && (begun.begun || r.Header.Get("Expect") == "") {
		_, _ = io.CopyN(io.Discard, r.Body, limit)
		a.beginResponse(w)
	}
}

// beginResponse begins the time for the response.
func (a *API) beginResponse(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.WriteLimit))
}

// lateWriter begins the time for a response with the response.
type lateWriter struct {
	http.ResponseWriter
	api   *API
	begun bool
}

// Unwrap lets [http.ResponseController] reach the connection.
func (l *lateWriter) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func (l *lateWriter) begin() {
	if !l.begun {
		l.begun = true
		l.api.beginResponse(l.ResponseWriter)
	}
}

func (l *lateWriter) WriteHeader(status int) {
	l.begin()
	l.ResponseWriter.WriteHeader(status)
}

func (l *lateWriter) Write(data []byte) (int, error) {
	l.begin()
	return l.ResponseWriter.Write(data)
}

// begunBody is a body that knows whether anybody has begun to read it.
type begunBody struct {
	io.ReadCloser
	begun bool
}

func (b *begunBody) Read(p []byte) (int, error) {
	b.begun = true
	return b.ReadCloser.Read(p)
}
