package httpapi

import (
	"io"
	"net/http"
	"sync"
)

// bodiesAtOnce is how many large bodies of one address the server has in memory at once. A body is large above maxBody.
const bodiesAtOnce = 32

// bodies counts the large bodies in memory, by the addresses that sent them.
type bodies struct {
	mu sync.Mutex
	of map[string]int
}

// begin counts a body until end is called. It fails if the address has as many as it may.
func (b *bodies) begin(address string) (end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[address] >= bodiesAtOnce {
		return nil, &rateError{1}
	}
	if b.of == nil {
		b.of = make(map[string]int)
	}
	b.of[address]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.of[address]--; b.of[address] == 0 {
			delete(b.of, address)
		}
	}, nil
}

// ReadContent reads the body of a write. A large body is read only if may, which can be nil, returns no error and if the address
// has not too many such bodies in memory. The caller calls end when it no longer needs the bytes.
func (a *API) ReadContent(w http.ResponseWriter, r *http.Request, may func() error) (data []byte, end func(), err error) {
	if r.ContentLength > a.MaxContent {
		return nil, nil, errTooLarge
	}
	end = func() {}
	body := http.MaxBytesReader(w, r.Body, a.MaxContent)
	if r.ContentLength < 0 || r.ContentLength > maxBody {
		if may != nil {
			err = may()
		}
		if err == nil {
			end, err = a.bodies.begin(a.network(r))
		}
		if err != nil {
			a.discard(r, body)
			return nil, nil, err
		}
	}
	if data, err = io.ReadAll(body); err != nil {
		end()
		return nil, nil, bodyError(err)
	}
	return data, end, nil
}

// discard reads a refused body without keeping it: many clients read no response before they have sent everything. A client
// that waits for a first response has sent nothing.
func (a *API) discard(r *http.Request, body io.Reader) {
	if r.Header.Get("Expect") == "" {
		_, _ = io.Copy(io.Discard, body)
	}
}
