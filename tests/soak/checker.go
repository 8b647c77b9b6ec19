package soak

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	onServer = "server" // the domain of its leases
	none     = -1       // no particular machine
)

// message is a client's report.
type message struct {
	Client, What        string
	Places              []place
	Number, Slots, Slot int
	Steal, Counted      bool
	Resource            string
	Token               int64
	Left                float64
	Code, Why           string
	Document            string
	Content, State      string
	Lines               []string
}

// reply is the checker's reply.
type reply struct {
	Go   bool `json:"go"`
	Stop bool `json:"stop"`
}

// heard is the last report of a client.
type heard struct {
	number int
	reply  reply
}

// checker receives the reports of the clients of one run.
type checker struct {
	begun time.Time

	mu         sync.Mutex
	ledger     *ledger
	archive    *archive
	domains    map[string]string // of the clients that are to run
	running    map[string]string // the last reports, with their times, of those that have not reported their end
	heard      map[string]heard
	count      map[string]int
	violations []string
	over       bool
}

func newChecker() *checker {
	return &checker{begun: time.Now(), ledger: newLedger(), archive: newArchive(), domains: map[string]string{},
		running: map[string]string{}, heard: map[string]heard{}, count: map[string]int{}}
}

func (c *checker) now() time.Duration { return time.Since(c.begun) }

func (c *checker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	answer := c.hear(m)
	c.mu.Unlock()
	_ = json.NewEncoder(w).Encode(answer)
}

func (c *checker) hear(m message) reply {
	domain, known := c.domains[m.Client]
	if !known { // it was ended: its report does not count
		return reply{Stop: true}
	}
	before := c.heard[m.Client].number
	if before >= m.Number { // a repeated report
		return c.heard[m.Client].reply
	}
	if m.Number > before+1 { // the missing reports would be treated as repeated
		c.violations = append(c.violations, fmt.Sprintf("%s told %q out of turn: %d after %d", m.Client, m.What, m.Number, before))
	}
	answer := c.take(m, domain)
	c.heard[m.Client] = heard{m.Number, answer}
	return answer
}

func (c *checker) take(m message, domain string) reply {
	now, left := c.now(), time.Duration(m.Left*float64(time.Millisecond))
	c.running[m.Client] = fmt.Sprintf("%s at %v", m.What, now.Round(time.Millisecond))
	switch m.What {
	case "ask":
		c.asked(now, m, domain)
	case "granted":
		c.count["leases granted, "+kindOf(domain)]++
		c.ledger.granted(now, m.Client, m.Resource, m.Token, m.Slot, m.Counted || domain == onServer)
	case "confirm":
		return reply{Go: c.ledger.confirm(now, m.Client, left)}
	case "left":
		if m.Code != "" {
			c.count["leases ended "+m.Code]++
		}
		c.ledger.left(now, m.Client, left)
	case "failed":
		c.count["refused "+m.Code]++
		c.ledger.failed(now, m.Client)
	case "saved":
		c.count["saves of documents "+placeOf(m.Document)]++
		c.archive.acknowledged(m.Document, m.Client, m.Token, m.Lines)
	case "loaded":
		c.count["loads of documents "+placeOf(m.Document)]++
		c.archive.loaded(m.Document, m.Client, m.Token, m.Content)
	case "note":
		c.count["refused "+m.Code]++
	case "late":
		c.archive.writtenLate(m.Document, m.Lines)
	case "wrote late":
		c.wroteLate(m)
	case "read":
		c.archive.read(m.Document, m.Client, m.Content)
	case "poll":
		c.count["editors "+m.State]++
		return reply{Stop: c.over, Go: c.archive.superseded(m.Document, m.Token)}
	case "done":
		delete(c.running, m.Client)
	case "error":
		delete(c.running, m.Client)
		c.violations = append(c.violations, fmt.Sprintf("%s failed: %s", m.Client, m.Why))
	}
	return reply{Stop: c.over}
}

// asked records a request for a lease. After the end of the run there is none: its client stops instead.
func (c *checker) asked(now time.Duration, m message, domain string) {
	if c.over {
		return
	}
	c.count["leases asked for"]++
	if m.Steal {
		c.count["steals"]++
	}
	c.ledger.ask(now, m.Client, request{Domain: domain, Places: m.Places, Slots: m.Slots, Steal: m.Steal})
}

// wroteLate records how a document received what a client wrote after its time. It must not be accepted.
func (c *checker) wroteLate(m message) {
	c.count["late writes "+placeOf(m.Document)+" "+m.Code]++
	if m.Code == "accepted" {
		c.violations = append(c.violations, fmt.Sprintf("the server accepted what %s wrote to %s when its time was over", m.Client, m.Document))
	}
}

// kindOf returns the part of a domain's or document's name that names its kind: "web-lock of machine 0" is a
// web-lock.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, " of ")
	return kind
}

func placeOf(document string) string {
	if strings.HasPrefix(document, "shared") {
		return "on the server"
	}
	return "in the browser"
}

// enter records that a client of a domain is about to begin.
func (c *checker) enter(client, domain string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.domains[client] = domain
}

// end records that the clients whose names have this prefix are about to be killed.
func (c *checker) end(prefix string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.ended(c.now(), prefix)
	for client := range c.domains {
		if strings.HasPrefix(client, prefix) {
			delete(c.domains, client)
			delete(c.running, client)
			delete(c.heard, client)
		}
	}
}

// skew records that the clock of a machine, or of all for none, is about to be set.
func (c *checker) skew(machine int) {
	clients, domains := fmt.Sprintf("m%d.", machine), fmt.Sprintf(" of machine %d ", machine)
	if machine == none {
		clients, domains = "", " of machine "
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.skew(c.now(), clients, domains)
}

// watchClock excuses all clients when this machine's clock steps, until done is closed.
func (c *checker) watchClock(done <-chan struct{}) {
	const step = 50 * time.Millisecond
	before := time.Now()
	for {
		select {
		case <-done:
			return
		case <-time.After(step / 2):
		}
		now := time.Now()
		if drift := now.Round(0).Sub(before.Round(0)) - now.Sub(before); drift.Abs() > step {
			c.skew(none)
			c.mu.Lock()
			c.count["steps of this machine's own clock"]++
			c.mu.Unlock()
		}
		before = now
	}
}

// look adds the clients that have waited too long.
func (c *checker) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.forgotten(c.now(), patience)
}

// stop makes every program end after its current action.
func (c *checker) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// left returns the clients that have not ended, with their last reports.
func (c *checker) left() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.running)
}

func (c *checker) accuse(format string, values ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, fmt.Sprintf(format, values...))
}

// read records the content of a document at the end. token is above that of every editor.
func (c *checker) read(document, content string) {
	const last = 1 << 62
	c.mu.Lock()
	defer c.mu.Unlock()
	c.archive.loaded(document, "the end", last, content)
}

// counted reports whether there were at least this many leases and saves.
func (c *checker) counted(leases, saves int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger.grants >= leases && c.archive.saves >= saves
}

// found returns all violations.
func (c *checker) found() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.ledger.violations, c.archive.violations, c.violations)
}
