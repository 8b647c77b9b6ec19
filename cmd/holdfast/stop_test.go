package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loopback"
)

// With this variable the test binary is the command itself, with a small site: a build of the command would take
// longer than its tests. HOLDFAST_BINARY names a built command to run instead, as make chaos-server does.
const asCommand = "HOLDFAST_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(execute(os.Args[1:], site))
	}
	os.Exit(m.Run())
}

// process is a running holdfast serve.
type process struct {
	*exec.Cmd
	addr  string
	log   strings.Builder
	ended func() error // waits for its end
}

func serveInProcess(t *testing.T, flags ...string) *process {
	t.Helper()
	return serveBy(t, nil, flags...)
}

// serveBy starts the server with a command before its own, such as one that sets a limit.
func serveBy(t *testing.T, before []string, flags ...string) *process {
	t.Helper()
	binary := cmp.Or(os.Getenv("HOLDFAST_BINARY"), os.Args[0])
	p := &process{}
	// The path of a socket must be short, and a test's own directory may have a long path.
	dir, err := os.MkdirTemp("", "stop")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	command := append(slices.Clone(before), binary, "serve", "--addr", "127.0.0.1:0", "--data-dir", dir, "--drain", "0s")
	p.Cmd = exec.Command(command[0], append(command[1:], flags...)...)
	// By default the race detector sleeps for a second at the end.
	p.Env = append(os.Environ(), asCommand+"=yes", "GORACE=atexit_sleep_ms=0")
	p.Stderr = &p.log
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	p.ended = sync.OnceValue(p.Wait)
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.ended() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "%s", &p.log)
	port := regexp.MustCompile(`localhost(:\d+)`).FindStringSubmatch(line)
	require.NotNil(t, port, line)
	p.addr = "127.0.0.1" + port[1]
	return p
}

// stop sends SIGTERM and checks how the process ends.
func (p *process) stop(t *testing.T) {
	t.Helper()
	begin := time.Now()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() { ended <- p.ended() }()
	select {
	case err := <-ended:
		assert.NoError(t, err, "exit code 0, so it did not need all of its time: %s", &p.log)
		t.Logf("ended after %s", time.Since(begin).Round(time.Millisecond))
	case <-time.After(time.Minute):
		require.Fail(t, "it did not stop in time")
	}
}

func (p *process) dial(t *testing.T, path string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws://"+p.addr+path, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func (p *process) lock(t *testing.T, secret, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+p.addr+"/api/documents/"+path, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := http.DefaultClient.Do(request)
	if !assert.NoError(t, err) {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func read(t *testing.T, conn *websocket.Conn, kind string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		_, text, err := conn.Read(ctx)
		require.NoError(t, err)
		var message map[string]any
		require.NoError(t, json.Unmarshal(text, &message))
		if message["type"] == kind {
			return message
		}
	}
}

func write(t *testing.T, conn *websocket.Conn, message map[string]any) {
	t.Helper()
	text, err := json.Marshal(message)
	require.NoError(t, err)
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, text))
}

// liveSockets opens sockets of documents and of a room, and waits until each has received a message.
func (p *process) liveSockets(t *testing.T, each int) []*websocket.Conn {
	t.Helper()
	var list []*websocket.Conn
	for i := range each {
		document := fmt.Sprint("r", i)
		conn := p.dial(t, "/api/documents/"+document+"/events?after=0")
		assert.Equal(t, http.StatusOK, p.lock(t, "ann", document+"/lock"))
		read(t, conn, "document.locked")
		list = append(list, conn)
	}
	var room any
	for i := range each {
		conn := p.dial(t, "/ws")
		message := map[string]any{"type": "enterTheRoom", "userToken": read(t, conn, "connected")["userToken"],
			"userName": fmt.Sprint("U", i), "roomId": room}
		if i == 0 {
			message["type"] = "createRoom"
			delete(message, "roomId")
		}
		write(t, conn, message)
		if i == 0 {
			room = read(t, conn, "roomCreated")["roomId"]
		}
		read(t, conn, "roomInfo")
		list = append(list, conn)
	}
	return list
}

// SIGTERM ends every socket with "going away", a waiting request with 503, and the process with 0. None of this is an error to the operator.
func TestSIGTERMEndsLiveSockets(t *testing.T) {
	p := serveInProcess(t)
	sockets := p.liveSockets(t, 20)
	codes := make([]websocket.StatusCode, len(sockets))
	var reading sync.WaitGroup
	for i, conn := range sockets {
		reading.Go(func() {
			for {
				if _, _, err := conn.Read(t.Context()); err != nil {
					codes[i] = websocket.CloseStatus(err)
					return
				}
			}
		})
	}
	var status int
	reading.Go(func() { status = p.lock(t, "bob", "r0/lock?wait_ms=60000") })
	require.Eventually(t, func() bool { return strings.Contains(get(t, p, "/metrics"), "\nholdfast_waiters 1\n") },
		10*time.Second, 5*time.Millisecond)

	p.stop(t)
	reading.Wait()
	for i, code := range codes {
		assert.Equal(t, websocket.StatusGoingAway, code, "socket %d", i)
	}
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.NotContains(t, p.log.String(), "level=ERROR")
}

// Clients that do not answer the close message do not delay the server's end.
func TestSIGTERMDoesNotWaitForSilentSockets(t *testing.T) {
	p := serveInProcess(t, "--stop-limit", "1s")
	p.liveSockets(t, 3)
	p.stop(t)
}

// A program that rotates the logs sends SIGHUP while the server starts, which takes minutes for a large store. The server goes on: systemd
// does not start a program again that SIGHUP has ended.
func TestSIGHUPDoesNotEndTheStart(t *testing.T) {
	t.Parallel()
	bucket, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer func() { _ = bucket.Close() }()
	require.NoError(t, bucket.SetDeadline(time.Now().Add(time.Minute)))
	cmd := exec.Command(os.Args[0], "serve", "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--blobs", "s3://bucket?endpoint=http://"+bucket.Addr().String())
	cmd.Env = append(os.Environ(), asCommand+"=yes", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret")
	var log strings.Builder
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	waits, err := bucket.Accept()
	require.NoError(t, err)
	defer func() { _ = waits.Close() }()
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, cmd.Wait(), &log)
}

func get(t *testing.T, p *process, path string) string {
	response, err := http.Get("http://" + p.addr + path)
	if !assert.NoError(t, err) {
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	assert.NoError(t, err)
	return string(text)
}

// After SIGTERM the server takes connections for the time of --drain. Ctrl+C does not wait for that.
func TestDrain(t *testing.T) {
	t.Parallel()
	const long = 600 * time.Millisecond
	p, begin := serveInProcess(t, "--drain", long.String()), time.Now()
	p.stop(t)
	assert.GreaterOrEqual(t, time.Since(begin), long)

	interrupted, begin := serveInProcess(t, "--drain", "30s", "--stop-limit", "2m"), time.Now()
	require.NoError(t, interrupted.Process.Signal(os.Interrupt))
	assert.NoError(t, interrupted.ended())
	assert.Less(t, time.Since(begin), 30*time.Second)
}

// With an address of their own, the metrics are there alone.
func TestMetricsAreApart(t *testing.T) {
	t.Parallel()
	port, err := loopback.FreePort()
	require.NoError(t, err)
	apart := &process{addr: "127.0.0.1:" + port}
	p := serveInProcess(t, "--metrics-addr", apart.addr)
	assert.Contains(t, get(t, apart, "/metrics"), "\nholdfast_locks 0\n")
	assert.Equal(t, "ok\n", get(t, apart, "/healthz"))
	assert.Equal(t, "ready\n", get(t, apart, "/readyz"))
	assert.Contains(t, get(t, apart, "/api/session"), "404")
	assert.Contains(t, get(t, p, "/metrics"), "404")
	assert.Equal(t, "ready\n", get(t, p, "/readyz"))
	taken := serveOnce(t, "--metrics-addr", apart.addr)
	assert.ErrorContains(t, taken, apart.addr+" is taken by another program")
}

func serveOnce(t *testing.T, flags ...string) error {
	return run(t.Context(), append([]string{"serve", "--addr", "127.0.0.1:0", "--data-dir", t.TempDir()}, flags...), site, io.Discard, io.Discard)
}

// The log is JSON, and has each request with the id of its response and without its query.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	p := serveInProcess(t, "--log", "json", "--access-log")
	response, err := http.Get("http://" + p.addr + "/api/documents/none/content?secret=1")
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	id := response.Header.Get("X-Request-Id")
	require.NotEmpty(t, id)
	long, err := http.Get("http://" + p.addr + "/" + strings.Repeat("%01", 20_000)) // each is longer in the log
	require.NoError(t, err)
	require.NoError(t, long.Body.Close())
	socket := p.dial(t, "/ws")
	read(t, socket, "connected")
	p.stop(t)
	assert.Less(t, p.log.Len(), 30_000, "a path is clipped")
	found := map[string]map[string]any{}
	for line := range strings.Lines(p.log.String()) {
		var entry map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		if entry["msg"] == "request" {
			found[fmt.Sprint(entry["path"])] = entry
		}
	}
	assert.NotContains(t, p.log.String(), "secret")
	entry := found["/api/documents/none/content"]
	assert.Equal(t, []any{id, "GET", float64(404), float64(len(body)), "127.0.0.1"},
		[]any{entry["request"], entry["method"], entry["status"], entry["bytes"], entry["address"]})
	assert.Equal(t, float64(http.StatusSwitchingProtocols), found["/ws"]["status"])
	assert.ErrorContains(t, serveOnce(t, "--log", "xml"), "wrong usage")
}
