package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/coder/websocket"
)

// server is a running holdfast.
type server struct {
	process    *exec.Cmd
	binary     string
	addr       string
	dir, base  string
	flags      []string
	readyAfter time.Duration
	client     *http.Client
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// startServer starts a server with further flags. With --tls-cert it has TLS.
func startServer(binary string, flags ...string) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	s := &server{binary: binary, addr: addr, dir: dir, base: "http://" + addr, flags: flags,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 10 * time.Second}}
	if slices.Contains(flags, "--tls-cert") {
		s.base = "https://" + addr
	}
	if err := s.run(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// run starts the process and waits until it is ready.
func (s *server) run() error {
	s.process = exec.Command(s.binary, append([]string{"serve", "--addr", s.addr, "--data-dir", filepath.Join(s.dir, "data"),
		"--rate", "0", "--new-rate", "0", "--address-rate", "0", "--user-rate", "0", "--max-wait", "5m", "--max-locks", "0", "--max-tickets", "0", "--max-documents", "0", "--max-sockets", "0", "--log-level", "error"}, s.flags...)...)
	s.process.Stderr = os.Stderr
	begin := time.Now()
	if err := s.process.Start(); err != nil {
		return err
	}
	for time.Since(begin) < time.Minute {
		response, err := s.client.Get(s.base + "/readyz")
		if err == nil {
			response.Body.Close()
			s.readyAfter = time.Since(begin)
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("%s did not become ready", s.binary)
}

func (s *server) stop() {
	if s.process.Process != nil {
		_ = s.process.Process.Signal(os.Interrupt)
		_ = s.process.Wait()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *server) call(method, document, secret string) (token int64, err error) {
	request, err := http.NewRequest(method, s.base+"/api/documents/"+document+"/lock", bytes.NewReader(nil))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s %s: %s", method, document, text)
	}
	var body struct {
		Token int64 `json:"token"`
	}
	err = json.Unmarshal(text, &body)
	return body.Token, err
}

func holdfastCycle(s *server) func(int) (time.Duration, error) {
	return func(i int) (time.Duration, error) {
		document := "bench-" + strconv.Itoa(i)
		begin := time.Now()
		if _, err := s.call("POST", document, "bench"); err != nil {
			return 0, err
		}
		d := time.Since(begin)
		_, err := s.call("DELETE", document, "bench")
		return d, err
	}
}

// usage returns the server's processor time and resident memory.
func (s *server) usage() (cpu time.Duration, rss int64, err error) {
	return usageOf(s.process.Process.Pid)
}

func usageOf(process int) (cpu time.Duration, rss int64, err error) {
	pid := strconv.Itoa(process)
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	ticks := int64(0)
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		ticks += n
	}
	pages, err := strconv.ParseInt(fields[21], 10, 64)
	return time.Duration(ticks) * 10 * time.Millisecond, pages * int64(os.Getpagesize()), err
}

// keepAlive holds locks and sends a heartbeat for each of them every 10 s.
func keepAlive(t *table, s *server, locks int, long time.Duration) error {
	var group errgroup.Group
	group.SetLimit(32)
	for i := range locks {
		group.Go(func() error { _, err := s.call("POST", "live-"+strconv.Itoa(i), "bench"); return err })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	beatAll := func(long time.Duration) error {
		group = errgroup.Group{}
		group.SetLimit(32)
		begin := time.Now()
		for i := 0; time.Since(begin) < long; i++ {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * 10 * time.Second / time.Duration(locks))))
			group.Go(func() error { _, err := s.call("PUT", "live-"+strconv.Itoa(i%locks), "bench"); return err })
		}
		return group.Wait()
	}
	if err := beatAll(3 * time.Second); err != nil {
		return err
	}
	before, _, err := s.usage()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := beatAll(long); err != nil {
		return err
	}
	after, rss, err := s.usage()
	if err != nil {
		return err
	}
	share := float64(after-before) / float64(time.Since(begin)) * 100
	t.add(fmt.Sprintf("%d live locks, heartbeats every 10 s", locks), "holdfast",
		fmt.Sprintf("%.0f %% of a core, %.0f MB", share, float64(rss)/1e6), "15 %, 100 MB")
	return nil
}

// fanOut measures the time from the call that acquires or releases a lock until every socket of the document has received
// the event.
func fanOut(t *table, s *server, sockets, rounds int) error {
	arrivals := make(chan time.Time, sockets*2)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var group errgroup.Group
	group.SetLimit(50)
	for range sockets {
		group.Go(func() error {
			conn, _, err := websocket.Dial(ctx, strings.Replace(s.base, "http", "ws", 1)+"/api/documents/fan/events", nil)
			if err != nil {
				return err
			}
			go func() {
				for {
					if _, _, err := conn.Read(ctx); err != nil {
						return
					}
					arrivals <- time.Now()
				}
			}()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var times []time.Duration
	for i := range rounds {
		begin := time.Now()
		if _, err := s.call([]string{"POST", "DELETE"}[i%2], "fan", "bench"); err != nil {
			return err
		}
		for range sockets {
			times = append(times, (<-arrivals).Sub(begin))
		}
	}
	t.add(fmt.Sprintf("event to %d sockets of a document, p50 and p99", sockets), "holdfast",
		fmt.Sprintf("%.0f ms, %.0f ms", ms(quantile(times, .5)), ms(quantile(times, .99))), "p99 50 ms")
	return nil
}

func (s *server) do(method, path, secret string, body, answer any) error {
	return s.send(s.client, method, path, secret, body, answer)
}

// send sends a request with a JSON body and decodes the response into answer, unless answer is nil.
func (s *server) send(client *http.Client, method, path, secret string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, s.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s by %s: %s", method, path, secret, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
