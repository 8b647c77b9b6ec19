package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

// upload is a client that has sent the header of a write, and waits until the server reads the body.
type upload struct {
	net.Conn
	answers *bufio.Reader
}

func (c client) upload(document string, token int64, size int) upload {
	return c.withToken(token).begin("PUT", contentOf(document), size)
}

// begin sends the header of a request with a body of that size.
func (c client) begin(method, path string, size int) upload {
	c.t.Helper()
	address := strings.TrimPrefix(c.base, "http://")
	conn, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", address)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n",
		method, path, address, c.secret, size)
	require.NoError(c.t, err)
	require.NoError(c.t, c.header.Write(conn))
	_, err = conn.Write([]byte("\r\n"))
	require.NoError(c.t, err)
	return upload{conn, bufio.NewReader(conn)}
}

// status is that of the next response, which is 100 if the server reads the body.
func (u upload) status(t testing.TB) int {
	t.Helper()
	line, err := u.answers.ReadString('\n')
	require.NoError(t, err)
	var status int
	_, err = fmt.Sscanf(line, "HTTP/1.1 %d", &status)
	require.NoError(t, err)
	_, err = u.answers.ReadString('\n')
	require.NoError(t, err)
	return status
}

// A client without the lock cannot make the server keep a large body in memory, and no address can make it keep many.
func TestLargeBodiesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxContent = 1 << 20 })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	token := ann.lock("r")
	const large, bound = 1 << 20, 32
	assert.Equal(t, http.StatusForbidden, bob.upload("r", token, large).status(t))
	assert.Equal(t, http.StatusConflict, ann.upload("r", token+1000, large).status(t))
	assertError(t, bob.save("r", token, strings.Repeat("x", large)), http.StatusForbidden, "not_locked_by_user")

	var begun []upload
	for range bound {
		u := ann.upload("r", token, large)
		require.Equal(t, http.StatusContinue, u.status(t))
		begun = append(begun, u)
	}
	assert.Equal(t, http.StatusTooManyRequests, ann.upload("r", token, large).status(t))
	assertError(t, ann.save("r", token, strings.Repeat("x", large)), http.StatusTooManyRequests, "rate_limited")
	require.Equal(t, http.StatusOK, ann.save("r", token, "short").status)
	_, err := begun[0].Write(make([]byte, large))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, begun[0].status(t))
	assert.Equal(t, http.StatusContinue, ann.upload("r", token, large).status(t), "one has ended")
}

// Other programs than web editors send large files. Where a lock is in the way or a condition fails, the server does not ask
// for one.
func TestLargeFilesAreRefusedBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxContent = 1 << 20 })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	const large = 1 << 20
	ann.status(http.StatusCreated, "MKCOL /dav/c", "MKCOL /dav/c/d", "PUT /dav/c/r text", "PUT /dav/plan.docx text")
	for depth, refused := range map[string][]string{"0": {"/dav/c/new"}, "infinity": {"/dav/c/new", "/dav/c/r", "/dav/c/d/new"}} {
		token := ann.davLock("/dav/c", "exclusive", depth)
		for _, path := range refused {
			assert.Equal(t, http.StatusLocked, bob.begin("PUT", path, large).status(t), "%s under depth %s", path, depth)
			assert.Equal(t, http.StatusContinue, ann.with("If", "</dav/c> (<"+token+">)").begin("PUT", path, large).status(t), "%s under depth %s", path, depth)
		}
		if depth == "0" {
			assert.Equal(t, http.StatusContinue, bob.begin("PUT", "/dav/c/r", large).status(t), "the content of a member")
		}
		ann.with("Lock-Token", "<"+token+">").status(http.StatusNoContent, "UNLOCK /dav/c")
	}
	held := ann.davLock("/dav/c/r", "shared", "0")
	assert.Equal(t, http.StatusLocked, bob.begin("PUT", "/dav/c/r", large).status(t))
	bobs := bob.davLock("/dav/c/r", "shared", "0")
	assert.Equal(t, http.StatusContinue, bob.under(bobs).begin("PUT", "/dav/c/r", large).status(t), "one of several shared locks")
	assert.Equal(t, http.StatusLocked, bob.begin("PUT", "/dav/c/r", large).status(t), "a lock that is not submitted")
	assert.NotEqual(t, held, bobs)

	for header, status := range map[string]int{"If-Match": http.StatusPreconditionFailed, "If-None-Match": http.StatusContinue} {
		assert.Equal(t, status, ann.with(header, `"another"`).begin("PUT", "/dav/plan.docx", large).status(t), header)
		assert.Equal(t, status, ann.with(header, `"another"`).begin("PUT", "/dav/new.docx", large).status(t), "%s for a new file", header)
	}

	office := func(lock string) int {
		return ann.with("X-WOPI-Override", "PUT").with("X-WOPI-Lock", lock).begin("POST", "/wopi/files/plan.docx/contents", large).status(t)
	}
	assert.Equal(t, http.StatusConflict, office(""), "a file with content needs a lock")
	require.Equal(t, http.StatusOK, ann.wopi("LOCK", "one", "", nil).status)
	assert.Equal(t, http.StatusContinue, office("one"))
	assert.Equal(t, http.StatusConflict, office("two"))
}

// A body takes long to arrive. Meanwhile its user loses the right to write, or the key is removed. Nothing is written.
func TestRightThatEndsDuringAnUpload(t *testing.T) {
	t.Parallel()
	const rules = "signed-in * read lock write\n"
	others := keyLine("ann", "") + keyLine("root", "")
	for status, now := range map[int]struct{ rules, keys string }{
		http.StatusForbidden:    {"user:bob * read\n" + rules, others + keyLine("bob", "")},
		http.StatusUnauthorized: {rules, others},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			c := servertest.Unlimited(t)
			c.APIKeys, c.Policy = writeFile(t, others+keyLine("bob", "")), writeFile(t, rules)
			s := startWith(t, c)
			ann, bob := s.as(t, "ann-key"), s.as(t, "bob-key")
			ann.status(http.StatusCreated, "PUT /dav/plan.docx text", "PUT /dav/r text")
			require.Equal(t, http.StatusOK, bob.wopi("LOCK", "one", "", nil).status)
			begun := []upload{
				bob.upload("saved", bob.lock("saved"), 3), bob.begin("PUT", "/dav/r", 3),
				bob.with("X-WOPI-Override", "PUT").with("X-WOPI-Lock", "one").begin("POST", "/wopi/files/plan.docx/contents", 3),
			}
			for _, u := range begun {
				require.Equal(t, http.StatusContinue, u.status(t))
			}
			require.NoError(t, os.WriteFile(c.APIKeys, []byte(now.keys), 0o600))
			require.NoError(t, os.WriteFile(c.Policy, []byte(now.rules), 0o600))
			s.Reload()
			for i, u := range begun {
				_, err := u.Write([]byte("bad"))
				require.NoError(t, err)
				assert.Equal(t, status, u.status(t), "upload %d", i)
			}
			assert.Equal(t, http.StatusNotFound, ann.do("GET", contentOf("saved"), nil).status)
			assert.Equal(t, "text", string(ann.do("GET", "/dav/r", nil).text))
			assert.Equal(t, "text", string(ann.do("GET", "/dav/plan.docx", nil).text))
		})
	}
}

// The time for a response begins when the body has arrived, however slowly it came.
func TestSlowUploadGetsItsAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	token := s.as(t, "ann").lock("r")
	slow := httptest.NewUnstartedServer(s.Handler())
	const limit = 300 * time.Millisecond
	slow.Config.WriteTimeout = limit
	slow.Start()
	t.Cleanup(slow.Close)
	ann := s.as(t, "ann")
	ann.base = slow.URL
	u := ann.upload("r", token, 4)
	require.Equal(t, http.StatusContinue, u.status(t))
	time.Sleep(2 * limit) // a time limit from the request's beginning would be over
	_, err := u.Write([]byte("late"))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, u.status(t))
}

// A refused body that arrives slowly gets its answer too, and so does one that is too long.
func TestRefusedSlowUploadGetsItsAnswer(t *testing.T) {
	t.Parallel()
	const large, limit = 1 << 20, 300 * time.Millisecond
	s := start(t, func(c *server.Config) { c.MaxContent = large })
	token := s.as(t, "ann").lock("r")
	slow := httptest.NewUnstartedServer(s.Handler())
	slow.Config.WriteTimeout = limit
	slow.Start()
	t.Cleanup(slow.Close)
	secret := s.as(t, "ann").secret
	for _, c := range []struct {
		token, size int64
		status      int
	}{{token + 1000, large, http.StatusConflict}, {token, -1, http.StatusRequestEntityTooLarge}} {
		body, rest := io.Pipe()
		go func() {
			_, _ = rest.Write(make([]byte, large/2))
			time.Sleep(2 * limit) // as above
			_, _ = rest.Write(make([]byte, large/2))
			if c.size < 0 {
				_, _ = rest.Write([]byte("more"))
			}
			_ = rest.Close()
		}()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, slow.URL+contentOf("r"), body)
		require.NoError(t, err)
		r.ContentLength = c.size
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Holdfast-Token", strconv.FormatInt(c.token, 10))
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		_ = answer.Body.Close()
		assert.Equal(t, c.status, answer.StatusCode)
	}
}

// writesFirst sends a request as many clients do: it reads the response only when it has sent the whole body.
func (c client) writesFirst(t *testing.T, method, path string, size int64, chunked bool) int {
	t.Helper()
	c.t = t
	address := strings.TrimPrefix(c.base, "http://")
	conn, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", address)
	require.NoError(c.t, err)
	defer conn.Close()
	header := c.header.Clone()
	header.Set("Authorization", "Bearer "+c.secret)
	length := fmt.Sprintf("Content-Length: %d", size)
	if chunked {
		length = "Transfer-Encoding: chunked"
	}
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, path, address, length)
	require.NoError(c.t, err)
	require.NoError(c.t, header.Write(conn))
	_, err = conn.Write([]byte("\r\n"))
	require.NoError(c.t, err)
	part := make([]byte, 64<<10)
	for left := size; left > 0; left -= int64(len(part)) {
		part = part[:min(left, int64(len(part)))]
		if chunked {
			_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(part), part)
		} else {
			_, err = conn.Write(part)
		}
		require.NoError(c.t, err, "%d bytes are left", left)
	}
	if chunked {
		_, err = conn.Write([]byte("0\r\n\r\n"))
		require.NoError(c.t, err)
	}
	return upload{conn, bufio.NewReader(conn)}.status(c.t)
}

// A client that sends its whole body before it reads gets the refusal, by every way to write: of a body that is too large, and of one that may
// not be written at all.
func TestRefusedLargeBodyGetsItsAnswer(t *testing.T) {
	t.Parallel()
	const most, size = 1 << 20, 24 << 20 // much more than the buffers of a connection take
	s := start(t, func(c *server.Config) { c.MaxContent = most })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	token := strconv.FormatInt(ann.lock("r"), 10)
	ann.status(http.StatusCreated, "PUT /dav/plan.docx text", "PUT /dav/free text", "PUT /dav/locked text")
	require.Equal(t, http.StatusOK, ann.wopi("LOCK", "one", "", nil).status)
	ann.davLock("/dav/locked", "exclusive", "0")
	const large = http.StatusRequestEntityTooLarge
	for _, chunked := range []bool{false, true} {
		for call, c := range map[string]struct {
			client
			status int
		}{
			"PUT " + contentOf("r"):               {ann.with("Holdfast-Token", token), large},
			"DELETE /api/documents/r":             {ann.with("Holdfast-Token", token), large},
			"POST /api/locks":                     {ann, large},
			"PUT /dav/new":                        {ann, large},
			"PROPPATCH /dav/free":                 {ann, large},
			"POST /wopi/files/plan.docx/contents": {ann.with("X-WOPI-Override", "PUT").with("X-WOPI-Lock", "one"), large},
			"PUT " + contentOf("other"):           {ann, http.StatusBadRequest},
			"PUT /dav/":                           {ann, http.StatusMethodNotAllowed},
			"LOCK /dav/locked":                    {bob, large},
			"PROPPATCH /dav/locked":               {bob, large},
			"MKCOL /dav/made":                     {ann, http.StatusUnsupportedMediaType},
			"PUT /api/nothing":                    {ann, http.StatusNotFound},
			"PUT /api/documents/r/history":        {ann, http.StatusMethodNotAllowed},
			"PUT /api/documents/../lock":          {ann, http.StatusBadRequest},
			"PUT /wopi/files/plan.docx":           {ann, http.StatusNotImplemented},
			"PUT /readyz":                         {ann, http.StatusMethodNotAllowed},
			"PUT /nothing":                        {ann, http.StatusNotFound},
			"POST /ws":                            {ann, http.StatusMethodNotAllowed},
			"PUT " + lockOf("r"):                  {ann, http.StatusOK},
			"COPY /dav/free":                      {ann.with("Destination", "/dav/copy-"+strconv.FormatBool(chunked)), http.StatusCreated},
		} {
			method, path, _ := strings.Cut(call, " ")
			t.Run(fmt.Sprintf("%s, chunked %t", call, chunked), func(t *testing.T) {
				assert.Equal(t, c.status, c.writesFirst(t, method, path, size, chunked))
			})
		}
	}
}

// The server reads a refused body of unknown length up to its limit, and no further.
func TestARefusedBodyHasALimit(t *testing.T) {
	t.Parallel()
	const most, limit, buffers = 1 << 20, 64 << 20, 24 << 20
	s := start(t, func(c *server.Config) { c.MaxContent = most })
	ann := s.as(t, "ann")
	token := strconv.FormatInt(ann.lock("r"), 10)
	for call, c := range map[string]client{
		"PUT " + contentOf("r"): ann.with("Holdfast-Token", token), "PUT /dav/new": ann, "PUT /api/nothing": ann, "POST /api/locks": ann,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(call, " ")
			assert.Less(t, c.endless(t, method, path), limit+most+buffers)
		})
	}
}

// endless sends a body without an end, and returns how many bytes the server has taken when it cuts the connection.
func (c client) endless(t *testing.T, method, path string) (sent int) {
	t.Helper()
	address := strings.TrimPrefix(c.base, "http://")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	header := c.header.Clone()
	header.Set("Authorization", "Bearer "+c.secret)
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n", method, path, address)
	require.NoError(t, err)
	require.NoError(t, header.Write(conn))
	chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", 64<<10, make([]byte, 64<<10))
	for _, err = conn.Write([]byte("\r\n")); err == nil; _, err = conn.Write(chunk) {
		sent += len(chunk)
	}
	return sent
}

// A desktop program copies, moves or deletes a collection, which takes longer than a response may take to be written. It gets its answer.
func TestLongChangesGetTheirAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/1 one", "PUT /dav/c/2 two", "PUT /dav/c/3 three")
	slow := httptest.NewUnstartedServer(s.Handler())
	slow.Config.WriteTimeout = time.Millisecond // the first commit takes longer
	slow.Start()
	t.Cleanup(slow.Close)
	ann.base = slow.URL
	ann.with("Destination", "/dav/copy").status(http.StatusCreated, "COPY /dav/c")
	ann.with("Destination", "/dav/moved").status(http.StatusCreated, "MOVE /dav/copy")
	ann.with("Depth", "1").status(http.StatusMultiStatus, "PROPFIND /dav/moved")
	ann.status(http.StatusNoContent, "DELETE /dav/moved")
}

// A request for a socket may state a body. It is not read when the socket ends: the socket reads the same buffer.
func TestTheBodyOfASocketIsNotRead(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	address := strings.TrimPrefix(ann.base, "http://")
	for _, path := range []string{"/api/documents/r/events", "/ws"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 1000000\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path, address, ann.secret)
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // the connection is closed, which is the body of this response
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	}
	s.Stop(t)
}
