package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

// network answers requests in virtual time.
type network struct {
	mu     sync.Mutex
	sent   []string // each request in a few words
	answer func(method string, body map[string]any) (int, any, error)
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	text, _ := io.ReadAll(r.Body)
	body := map[string]any{}
	_ = json.Unmarshal(text, &body)
	ticket, _ := body["ticket"].(string)
	n.mu.Lock()
	n.sent = append(n.sent, r.Method+" "+r.URL.RequestURI()+" "+ticket)
	n.mu.Unlock()
	status, says, err := n.answer(r.Method, body)
	if err != nil {
		return nil, err
	}
	if status == 0 { // it never answers
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	answer, _ := json.Marshal(says)
	if text, ok := says.(string); ok {
		answer = []byte(text)
	}
	recorder := httptest.NewRecorder()
	recorder.WriteHeader(status)
	_, _ = recorder.Write(answer)
	return recorder.Result(), nil
}

func (n *network) client(t *testing.T) *client.Client {
	c, err := client.New(client.Config{URL: "https://locks.test", Key: "very-secret", HTTP: &http.Client{Transport: n}})
	require.NoError(t, err)
	return c
}

const fakeTTL = 30 * time.Second

func granted() map[string]any {
	now := time.Now()
	return map[string]any{"lease_id": "l", "token": 7, "locked_at": now, "expires_at": now.Add(fakeTTL)}
}

func refusing(code string) map[string]any { return map[string]any{"error": code, "message": "No."} }

var errCut = errors.New("the connection was cut")

// A request without an answer is repeated with its ticket, so it cannot become two acquisitions.
func TestRepeatedAcquisitionKeepsTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		n.answer = func(method string, _ map[string]any) (int, any, error) {
			switch {
			case method != "POST":
				return 200, map[string]any{}, nil
			case len(n.sent) == 1:
				return 0, nil, errCut
			case len(n.sent) == 2:
				return 502, "<html>a proxy</html>", nil
			case len(n.sent) == 3:
				return 0, nil, nil
			}
			return 200, granted(), nil
		}
		c := n.client(t)
		l, err := c.Acquire(t.Context(), client.Request{Document: "plan"})
		require.NoError(t, err)
		require.Len(t, n.sent, 4)
		for _, sent := range n.sent {
			assert.Equal(t, n.sent[0], sent)
			assert.Regexp(t, `^POST /api/locks [0-9a-f-]{36}$`, sent)
		}
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestAbandonedAcquisitionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		n.answer = func(method string, _ map[string]any) (int, any, error) {
			if method == "POST" {
				return 0, nil, nil
			}
			if len(n.sent) < 4 {
				return 0, nil, errCut
			}
			return 200, map[string]any{}, nil
		}
		c := n.client(t)
		why := errors.New("changed my mind")
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer stop()
		_, err := c.Acquire(ctx, client.Request{Document: "plan", Wait: client.Forever})
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, client.ErrAborted)
		require.NoError(t, c.Close(t.Context()))
		require.Len(t, n.sent, 4)
		ticket := strings.Fields(n.sent[0])[2]
		assert.Equal(t, "DELETE /api/locks?ticket="+ticket, strings.TrimSpace(n.sent[3]))
	})
}

// The lease is lost a little before its TTL has passed since the latest renewal that was answered was sent: the server's clock may be
// faster by a thousandth. Until then the client tries.
func TestLeaseIsLostBeforeTheServerMayGrantIt(t *testing.T) {
	for name, silence := range map[string]func() (int, any, error){
		"cut":             func() (int, any, error) { return 0, nil, errCut },
		"no answer":       func() (int, any, error) { return 0, nil, nil },
		"unavailable":     func() (int, any, error) { return 503, refusing("unavailable"), nil },
		"unauthenticated": func() (int, any, error) { return 401, refusing("unauthenticated"), nil }, // the next token may be valid
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, renewals := &network{}, 0
				var last time.Time
				n.answer = func(method string, _ map[string]any) (int, any, error) {
					if method == "POST" {
						return 200, granted(), nil
					}
					if method == "DELETE" {
						return 200, map[string]any{}, nil
					}
					if renewals++; renewals > 2 {
						return silence()
					}
					last = time.Now()
					time.Sleep(2 * time.Second) // the answer is slow
					return 200, map[string]any{}, nil
				}
				c := n.client(t)
				l, err := c.Acquire(t.Context(), client.Request{Document: "plan"})
				require.NoError(t, err)
				<-l.Lost()
				assert.Less(t, time.Since(last), fakeTTL-fakeTTL/1000, "a faster server may grant it to another client now")
				assert.Greater(t, time.Since(last), fakeTTL-fakeTTL/100)
				assert.ErrorIs(t, l.Err(), client.ErrLost)
				assert.Greater(t, renewals, 4, "it has tried again")
				assert.ErrorIs(t, l.Release(t.Context()), client.ErrLost)
				require.NoError(t, c.Close(t.Context()))
			})
		})
	}
}

func TestServerSaysThatTheLeaseHasEnded(t *testing.T) {
	for status, code := range map[int]string{404: "lock_not_found", 403: "not_allowed"} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{answer: func(method string, _ map[string]any) (int, any, error) {
				if method == "POST" {
					return 200, granted(), nil
				}
				return status, refusing(code), nil
			}}
			c := n.client(t)
			begun := time.Now()
			l, err := c.Acquire(t.Context(), client.Request{Document: "plan"})
			require.NoError(t, err)
			<-l.Lost()
			assert.LessOrEqual(t, time.Since(begun), fakeTTL/3+time.Second)
			require.ErrorIs(t, l.Release(t.Context()), client.ErrLost)
			_ = c.Close(t.Context())
		})
	}
}

// An acquisition that waits keeps its place over a server that is away for longer than the patience.
func TestWaitOutlastsThePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{answer: func(string, map[string]any) (int, any, error) { return 0, nil, errCut }}
		c := n.client(t)
		begun := time.Now()
		_, err := c.Acquire(t.Context(), client.Request{Document: "plan", Wait: time.Minute})
		require.ErrorIs(t, err, client.ErrUnreachable)
		assert.GreaterOrEqual(t, time.Since(begun), time.Minute)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		_, err = c.Acquire(ctx, client.Request{Document: "plan", Wait: client.Forever})
		require.ErrorIs(t, err, client.ErrAborted)
		require.NoError(t, c.Close(t.Context()))
	})
}

// announcing answers like a proxy that announces an hour of maintenance.
type announcing struct{}

func (announcing) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Retry-After", "3600")
	recorder.WriteHeader(http.StatusServiceUnavailable)
	_, _ = recorder.WriteString(`{"error": "maintenance", "message": "We are back soon."}`)
	return recorder.Result(), nil
}

// A proxy announces an hour of maintenance. An acquisition ends at its limit nevertheless.
func TestAcquisitionEndsBeforeAnAnnouncedHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(client.Config{URL: "https://locks.test", Key: "key", HTTP: &http.Client{Transport: announcing{}}})
		require.NoError(t, err)
		begun := time.Now()
		_, err = c.Acquire(t.Context(), client.Request{Document: "plan", Wait: time.Minute})
		require.Error(t, err)
		assert.LessOrEqual(t, time.Since(begun), 90*time.Second)
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, silence := range []func() (int, any, error){
			func() (int, any, error) { return 0, nil, errCut }, func() (int, any, error) { return 0, nil, nil },
		} {
			n := &network{answer: func(string, map[string]any) (int, any, error) { return silence() }}
			c := n.client(t)
			for operation, call := range map[string]func() error{
				"acquire": func() error { _, err := c.Acquire(t.Context(), client.Request{Document: "plan"}); return err },
				"read":    func() error { _, err := c.Locks(t.Context(), "a"); return err },
			} {
				begun := time.Now()
				err := call()
				require.ErrorIs(t, err, client.ErrUnreachable, operation)
				assert.NotContains(t, err.Error(), "very-secret")
				assert.Contains(t, err.Error(), "https://locks.test")
				assert.LessOrEqual(t, time.Since(begun), 16*time.Second, operation)
				assert.GreaterOrEqual(t, time.Since(begun), 10*time.Second, operation)
			}
			require.NoError(t, c.Close(t.Context()))
		}
	})
}

// An administrator's deletion whose answer is lost is not repeated: the holder may have saved again, and nobody has seen that content.
func TestDeletionWithoutALockIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{answer: func(string, map[string]any) (int, any, error) { return 0, nil, errCut }}
		c := n.client(t)
		require.ErrorIs(t, c.Delete(t.Context(), client.Fence{}, "plan", client.PutOptions{}), client.ErrUnreachable)
		assert.Len(t, n.sent, 1)
		n.sent = nil
		require.ErrorIs(t, c.Delete(t.Context(), client.Fence{Session: "s", Token: 7}, "plan", client.PutOptions{}), client.ErrUnreachable)
		assert.Greater(t, len(n.sent), 1, "under a lock, nobody else saves")
	})
}

// A server that accepts the request for a backup and stays silent, before its answer or within it, does not hang the call.
func TestSilentBackupEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for within, silent := range map[string]func(r *http.Request) (*http.Response, error){
			"no answer": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
			"no end": func(r *http.Request) (*http.Response, error) {
				body, sent := io.Pipe()
				context.AfterFunc(r.Context(), func() { _ = sent.CloseWithError(r.Context().Err()) })
				return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
			},
		} {
			c, err := client.New(client.Config{URL: "https://locks.test", Key: "very-secret", HTTP: &http.Client{Transport: transport(silent)}})
			require.NoError(t, err)
			begun := time.Now()
			err = c.Backup(t.Context(), io.Discard)
			require.ErrorIs(t, err, client.ErrUnreachable, within)
			assert.Contains(t, err.Error(), "1m0s", within)
			assert.Equal(t, time.Minute, time.Since(begun), within)

			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			require.ErrorIs(t, c.Backup(ctx, io.Discard), client.ErrAborted, within)
			cancel()
			require.NoError(t, c.Close(t.Context()))
		}
	})
}

// A disk that is full is no fault of the server.
func TestBackupThatCannotBeWritten(t *testing.T) {
	c := (&network{answer: func(string, map[string]any) (int, any, error) { return http.StatusOK, "archive", nil }}).client(t)
	read, write := io.Pipe()
	require.NoError(t, read.CloseWithError(syscall.ENOSPC))
	err := c.Backup(t.Context(), write)
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.NotErrorIs(t, err, client.ErrUnreachable)
	assert.Contains(t, err.Error(), "back up https://locks.test: the archive cannot be written")
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// An answer of another server than Holdfast fails at once.
func TestAnswerOfAnotherServerFailsAtOnce(t *testing.T) {
	moved := httptest.NewServer(http.RedirectHandler("https://elsewhere.test/", http.StatusMovedPermanently))
	defer moved.Close()
	secret := httptest.NewTLSServer(http.NotFoundHandler())
	defer secret.Close()
	for url, code := range map[string]string{moved.URL: "unexpected_answer", secret.URL: "unreachable"} {
		c, err := client.New(client.Config{URL: url, Key: "very-secret", Patience: time.Hour})
		require.NoError(t, err)
		_, err = c.Acquire(t.Context(), client.Request{Document: "plan"})
		assert.ErrorIs(t, err, &client.Error{Code: code})
		assert.NotContains(t, err.Error(), "very-secret")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []client.Config{
		{}, {URL: "locks.example.com"}, {URL: "ftp://locks.example.com"}, {URL: "https://ann:secret-pw@locks.example.com"}, {URL: "https://a/?q"},
		{URL: "https://a", Key: "key\n"}, {URL: "https://a", Key: "key", Token: func(context.Context) (string, error) { return "", nil }},
	} {
		_, err := client.New(c)
		require.ErrorIs(t, err, client.ErrInvalid)
		assert.NotContains(t, err.Error(), "secret-pw")
	}
}
