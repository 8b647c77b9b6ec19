package chaosserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

// promise is what the server has acknowledged for one document and one writer.
type promise struct {
	document string
	token    int64
	text     string // acknowledged
	next     string // sent when the server died; it may be stored or not
}

// load is a number of workers that lock and write documents of their own, one after the other.
type load struct {
	stop     chan struct{}
	working  sync.WaitGroup
	mu       sync.Mutex
	promises []*promise
}

// newLoad starts workers on documents whose names begin with name.
func newLoad(addr, name string, workers int) *load {
	l := &load{stop: make(chan struct{})}
	for i := range workers {
		l.working.Go(func() { l.work(addr, fmt.Sprint(name, "-", i)) })
	}
	return l
}

func (l *load) work(addr, name string) {
	client := &http.Client{Timeout: patience}
	for k := 0; ; k++ {
		p := &promise{document: fmt.Sprint(name, "-", k)}
		if p.lock(client, addr) {
			l.mu.Lock()
			l.promises = append(l.promises, p)
			l.mu.Unlock()
			for version := range 5 {
				if !p.save(client, addr, fmt.Sprint(p.document, " version ", version)) {
					break
				}
			}
		}
		select {
		case <-l.stop:
			return
		default:
		}
	}
}

// waitFor returns when the server has acknowledged this number of documents.
func (l *load) waitFor(t *testing.T, documents int) {
	t.Helper()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.promises) >= documents
	}, 10*patience, time.Millisecond)
}

// end waits for the workers and returns their promises.
func (l *load) end() []*promise {
	close(l.stop)
	l.working.Wait()
	return l.promises
}

// A server that is killed under load keeps every lock and every content that it acknowledged.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	n := newNode(t, tempDir(t), "")
	n.ready(t)
	kills := number("KILLS", 3)
	var promises []*promise
	for round := range kills {
		l := newLoad(n.addr, fmt.Sprint("r", round), 8)
		l.waitFor(t, 10)
		time.Sleep(rand.N(300 * time.Millisecond)) // the kill may come at any moment
		n.kill()
		promises = append(promises, l.end()...)
		require.NoError(t, n.start())
		n.ready(t)
		for _, p := range promises {
			p.check(t, n.addr)
		}
	}
	t.Logf("%d documents", len(promises))
}

func request(client *http.Client, method, url string, token int64, body string) (int, []byte) {
	r, err := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil
	}
	r.Header.Set("Authorization", "Bearer writer")
	r.Header.Set(remote.HeaderToken, strconv.FormatInt(token, 10))
	response, err := client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, text
}

func (p *promise) url(addr, what string) string {
	return "http://" + addr + "/api/documents/" + p.document + "/" + what
}

func tokenOf(text []byte) int64 {
	var body struct {
		Token int64 `json:"token"`
	}
	_ = json.Unmarshal(text, &body)
	return body.Token
}

func (p *promise) lock(client *http.Client, addr string) bool {
	status, text := request(client, "POST", p.url(addr, "lock"), 0, "")
	p.token = tokenOf(text)
	return status == http.StatusOK
}

func (p *promise) save(client *http.Client, addr, text string) bool {
	p.next = text
	status, _ := request(client, "PUT", p.url(addr, "content"), p.token, text)
	if status == http.StatusOK {
		p.text = text
	}
	return status == http.StatusOK
}

func (p *promise) check(t *testing.T, addr string) {
	t.Helper()
	_, text := request(http.DefaultClient, "GET", p.url(addr, "lock"), 0, "")
	require.Equal(t, p.token, tokenOf(text), p.document)
	if p.text == "" {
		return
	}
	_, text = request(http.DefaultClient, "GET", p.url(addr, "content"), 0, "")
	require.Contains(t, []string{p.text, p.next}, string(text))
}
