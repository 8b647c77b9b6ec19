package lock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// world is one browser: the tabs that join it share locks, records and the clock, in a bubble of virtual time.
type world struct {
	*testing.T
	space   *locktest.Space
	records *locktest.Records
	clock   *locktest.Clock
	start   time.Time
}

// virtual runs the test in virtual time. It fails if a goroutine is left behind.
func virtual(t *testing.T, run func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		run(t, &world{T: t, space: locktest.NewSpace(), records: &locktest.Records{}, clock: &locktest.Clock{}, start: time.Now()})
	})
}

// backend is the Web Locks of one tab.
func (w *world) backend(client string) lock.Backend {
	return lock.Backend{Strategy: lock.WebLock, Resource: "project", Locker: w.space.Client(client), Records: w.records}
}

// tab joins as an owner with one backend.
func (w *world) tab(id string) *owner { return w.join(id, w.backend(id)) }

func (w *world) join(id string, backends ...lock.Backend) *owner {
	w.Helper()
	return w.configured(id, lock.Config{Backends: backends})
}

func (w *world) configured(id string, c lock.Config) *owner {
	w.Helper()
	c.OwnerID, c.OwnerName, c.Clock = id, "tab "+id, w.clock
	m, err := lock.NewManager(c)
	require.NoError(w, err)
	o := &owner{Manager: m, w: w, id: id, leases: make(map[string]string)}
	m.Subscribe(func(e lock.Event) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events = append(o.events, e)
	})
	w.Cleanup(func() {
		// A mechanism that never answers must not hang the test as well.
		ctx, stop := context.WithTimeout(context.Background(), time.Hour)
		defer stop()
		assert.NoError(w, m.Close(ctx))
	})
	return o
}

// sleep lets virtual time pass, and waits until everything due by then has happened.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// mustBeFree fails if an owner still holds or waits.
func (w *world) mustBeFree() {
	w.Helper()
	synctest.Wait()
	s, err := w.space.Client("observer").Query(context.Background())
	require.NoError(w, err)
	require.Empty(w, s.Held, "a grant leaked")
	require.Empty(w, s.Pending, "a request leaked")
}

// owner is a manager whose events are recorded.
type owner struct {
	*lock.Manager
	w  *world
	id string

	mu     sync.Mutex
	events []lock.Event
	leases map[string]string // short names by id
}

// exact is a backoff of 1 s, 1.5 s, 2.25 s, …
var exact = lock.Backoff{Jitter: lock.NoJitter}

func (o *owner) acquire(opts lock.AcquireOptions) lock.Lease {
	o.w.Helper()
	lease, err := o.Acquire(context.Background(), opts)
	require.NoError(o.w, err)
	return lease
}

func (o *owner) release(l lock.Lease) {
	o.w.Helper()
	require.NoError(o.w, l.Release(context.Background()))
}

// outcome is the result of an acquisition in the background.
type outcome struct {
	lease lock.Lease
	err   error
	at    time.Duration
}

// begin acquires in the background; the channel receives the outcome.
func (o *owner) begin(ctx context.Context, opts lock.AcquireOptions) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		lease, err := o.Acquire(ctx, opts)
		c <- outcome{lease, err, time.Since(o.w.start)}
	}()
	synctest.Wait()
	return c
}

// seen returns the events so far.
func (o *owner) seen() []lock.Event {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]lock.Event(nil), o.events...)
}

// forget clears the recorded events.
func (o *owner) forget() {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = nil
}

// told fails unless exactly these events were seen, with all their fields.
func (o *owner) told(script string) {
	o.w.Helper()
	var want []string
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" {
			want = append(want, line)
		}
	}
	got := []string{}
	for _, e := range o.seen() {
		got = append(got, o.line(e))
	}
	assert.Equal(o.w, strings.Join(want, "\n"), strings.Join(got, "\n"))
}

// line formats an event with every field that is set, so that a field that does not belong to its type is a difference
// too.
func (o *owner) line(e lock.Event) string {
	o.w.Helper()
	assert.Equal(o.w, o.id, e.OwnerID, e.Type)
	assert.NotEmpty(o.w, e.Resource, e.Type)
	words := []string{e.At.Sub(o.w.start).String(), strings.TrimPrefix(string(e.Type), "lock:")}
	add := func(format string, v any) { words = append(words, fmt.Sprintf(format, v)) }
	if e.Resource != "project" {
		add("on %s", e.Resource)
	}
	if e.Operation != "" {
		add("%s", e.Operation)
	}
	if e.Reason != "" {
		add("%s", e.Reason)
	}
	if e.Err != nil {
		o.belongs(e)
		add("%s", e.Err.Code)
		if e.Err.Retryable() {
			add("%s", "retryable")
		}
	}
	if e.Strategy != "" {
		add("%s", e.Strategy)
	}
	if e.Type == lock.EventAttempt || e.Type == lock.EventWaiting || e.Retry != 0 {
		add("retry=%d", e.Retry)
	}
	if e.Delay != 0 {
		add("delay=%v", e.Delay)
	}
	if e.Warning != "" {
		add("%s", e.Warning)
		assert.NotEmpty(o.w, e.Detail)
	}
	if e.Lease != nil {
		add("%s", o.spell(e))
	}
	if e.NextHeartbeatIn != 0 {
		add("in=%v", e.NextHeartbeatIn)
		assert.Equal(o.w, e.At.Add(e.NextHeartbeatIn), e.Lease.NextHeartbeatAt)
	}
	assert.NotEmpty(o.w, e.LeaseID, e.Type)
	if e.Type == lock.EventReleased {
		add("%s", o.short(e.LeaseID))
	}
	if e.From != "" {
		add("from=%s", e.From)
	}
	return strings.Join(words, " ")
}

// belongs checks that the error of an event is of the event's resource and operation.
func (o *owner) belongs(e lock.Event) {
	o.w.Helper()
	assert.Equal(o.w, e.Resource, e.Err.Resource, e.Type)
	if e.Operation != "" {
		assert.Equal(o.w, e.Operation, e.Err.Operation, e.Type)
	}
}

func (o *owner) spell(e lock.Event) string {
	l := e.Lease
	assert.Equal(o.w, e.LeaseID, l.ID)
	assert.Equal(o.w, e.OwnerID, l.OwnerID)
	assert.Equal(o.w, "tab "+o.id, l.OwnerName)
	assert.Equal(o.w, e.Resource, l.Resource)
	assert.Equal(o.w, l.Strategy != lock.WebLock, l.Fallback)
	assert.Regexp(o.w, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, l.ID)
	s := fmt.Sprintf("%s{%s %s #%d since=%v ttl=%v expires=%v next=%v", o.short(l.ID), l.Strategy, l.Mode, l.Token,
		l.AcquiredAt.Sub(o.w.start), l.TTL, l.ExpiresAt.Sub(o.w.start), l.NextHeartbeatAt.Sub(o.w.start))
	if l.RenewAttempt != 0 {
		s += fmt.Sprintf(" failed=%d", l.RenewAttempt)
	}
	return s + "}"
}

// short names leases A, B, C in the order of their first events.
func (o *owner) short(id string) string {
	if _, ok := o.leases[id]; !ok {
		o.leases[id] = string(rune('A' + len(o.leases)))
	}
	return o.leases[id]
}

// count returns how many events of the type came.
func (o *owner) count(t lock.EventType) (n int) {
	for _, e := range o.seen() {
		if e.Type == t {
			n++
		}
	}
	return n
}

// last returns the last event.
func (o *owner) last() lock.Event {
	o.w.Helper()
	seen := o.seen()
	require.NotEmpty(o.w, seen)
	return seen[len(seen)-1]
}

// lockerFunc is a Locker made of one function.
type lockerFunc func(context.Context, lock.Request) (lock.Grant, error)

func (f lockerFunc) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	return f(ctx, r)
}

func (f lockerFunc) Query(context.Context) (lock.Snapshot, error) { return lock.Snapshot{}, nil }

// recordsFunc are Records whose Renew is one function.
type recordsFunc struct {
	*locktest.Records
	claim, renew, remove func(context.Context, lock.Record) error
}

func (r recordsFunc) Claim(ctx context.Context, rec lock.Record, stolen bool) (int64, error) {
	if r.claim != nil {
		if err := r.claim(ctx, rec); err != nil {
			return 0, err
		}
	}
	return r.Records.Claim(ctx, rec, stolen)
}

func (r recordsFunc) Renew(ctx context.Context, rec lock.Record) error {
	if r.renew != nil {
		if err := r.renew(ctx, rec); err != nil {
			return err
		}
	}
	return r.Records.Renew(ctx, rec)
}

func (r recordsFunc) Remove(ctx context.Context, rec lock.Record) error {
	if r.remove != nil {
		if err := r.remove(ctx, rec); err != nil {
			return err
		}
	}
	return r.Records.Remove(ctx, rec)
}
