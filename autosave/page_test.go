package autosave_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// world is one browser in a bubble of virtual time: its pages share locks, records,
// messages and the disk.
type world struct {
	*testing.T
	space   *locktest.Space
	records *locktest.Records
	locks   *locktest.Network
	network *autosavetest.Network
	disk    *autosavetest.Disk
	clock   *locktest.Clock
	start   time.Time

	renewal, removal atomic.Pointer[error] // why the records fail
}

func virtual(t *testing.T, run func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, space: locktest.NewSpace(), records: &locktest.Records{}, locks: locktest.NewNetwork(),
			network: autosavetest.NewNetwork(), disk: autosavetest.NewDisk(), clock: &locktest.Clock{}, start: time.Now()}
		w.records.OnRenew = func(lock.Record) error { return fails(&w.renewal) }
		w.records.OnRemove = func(lock.Record) error { return fails(&w.removal) }
		run(t, w)
	})
}

func fails(why *atomic.Pointer[error]) error {
	if err := why.Load(); err != nil {
		return *err
	}
	return nil
}

func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// page is a tab with an editor in it.
type page struct {
	*autosave.Saver
	w       *world
	name    string
	manager *lock.Manager
	files   *autosavetest.Client
	channel *autosavetest.Channel
	store   autosave.Store
	options lock.Config
	config  autosave.Config
	locks   func(autosave.Locks) autosave.Locks // if set, wraps the manager

	mu      sync.Mutex
	text    string
	events  []autosave.Event
	script  []string
	unsaved []string // what was offered
	asked   int      // snapshots taken
}

// prepare makes a page that is not open yet.
func (w *world) prepare(name string) *page {
	p := &page{w: w, name: name, files: w.disk.Client(), channel: w.network.Join()}
	p.options = lock.Config{OwnerID: name, OwnerName: "tab " + name, Clock: w.clock, Channel: w.locks.Join(),
		Backends: []lock.Backend{{Strategy: lock.WebLock, Resource: "project", Locker: w.space.Client(name), Records: w.records}}}
	p.store = autosave.NewLayout(p.files, autosavetest.SHA256)
	p.config = autosave.Config{Channel: p.channel, Clock: w.clock, Listener: p.hear, Snapshot: p.snapshot,
		Retry: lock.Backoff{Jitter: lock.NoJitter}, Lock: lock.AcquireOptions{Backoff: lock.Backoff{Jitter: lock.NoJitter}}}
	return p
}

var errBroken = errors.New("the editor is broken")

// breakable makes the snapshot fail while the returned switch is on.
func (p *page) breakable() *atomic.Bool {
	take, broken := p.config.Snapshot, new(atomic.Bool)
	p.config.Snapshot = func(ctx context.Context) (autosave.Content, error) {
		if broken.Load() {
			return nil, errBroken
		}
		return take(ctx)
	}
	return broken
}

// open opens a prepared page, as it was changed.
func (p *page) open() *page {
	p.w.Helper()
	require.NoError(p.w, p.tryOpen())
	return p
}

func (p *page) tryOpen() error { return p.openIn(context.Background()) }

// openIn opens the page in a context.
func (p *page) openIn(ctx context.Context) error {
	var err error
	p.manager, err = lock.NewManager(p.options)
	require.NoError(p.w, err)
	p.config.Store, p.config.Locks = p.store, p.manager
	if p.locks != nil {
		p.config.Locks = p.locks(p.manager)
	}
	p.Saver, err = autosave.New(ctx, p.config)
	p.w.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Hour)
		defer stop()
		if err == nil {
			_ = p.Dispose(ctx)
		}
		_ = p.manager.Close(ctx)
	})
	synctest.Wait()
	return err
}

// tab opens a page that changes nothing of the defaults.
func (w *world) tab(name string) *page {
	w.Helper()
	return w.prepare(name).open()
}

func (p *page) snapshot(context.Context) (autosave.Content, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return autosave.Bytes(p.text), nil
}

// hear does what a page does: it loads what it is given, and keeps what it is offered.
func (p *page) hear(e autosave.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	if e.Loaded {
		p.text = string(e.Content)
	}
	if e.Unsaved != nil {
		p.unsaved = append(p.unsaved, string(e.Unsaved))
	}
	p.script = append(p.script, p.line(e))
}

func (p *page) line(e autosave.Event) string {
	words := []string{time.Since(p.w.start).String(), strings.TrimPrefix(string(e.Type), "autosave:")}
	add := func(format string, v ...any) { words = append(words, fmt.Sprintf(format, v...)) }
	switch e.Type {
	case autosave.EventPhase:
		add("%s", e.State.Phase)
		if e.State.PendingBytes != 0 {
			add("pending=%d", e.State.PendingBytes)
		}
		if e.State.RetryCount != 0 {
			add("retry=%d", e.State.RetryCount)
		}
		if e.State.LastErr != nil {
			add("%s", code(e.State.LastErr))
		}
		if e.State.QueuedGeneration != 0 {
			add("queued=%d", e.State.QueuedGeneration)
		}
	case autosave.EventSaved:
		add("#%d %dB", e.Generation.Token, e.Generation.Bytes)
	case autosave.EventReadonly:
		add("%s", e.Reason)
		if e.Err != nil {
			add("%s", code(e.Err))
		}
		if e.Holder != nil {
			add("holder=%s", e.Holder.OwnerID)
		}
	case autosave.EventEditable:
		if e.Loaded {
			add("content=%q", e.Content)
		}
	}
	if e.Unsaved != nil {
		add("unsaved=%q", e.Unsaved)
	}
	return strings.Join(words, " ")
}

// code returns the code of an error, whichever package it is of.
func code(err error) string {
	text, _, _ := strings.Cut(err.Error(), ":")
	text, _, _ = strings.Cut(text, " ")
	return text
}

// told fails unless exactly these events came since the last call.
func (p *page) told(script string) {
	p.w.Helper()
	synctest.Wait()
	var want []string
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" {
			want = append(want, line)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.Equal(p.w, strings.Join(want, "\n"), strings.Join(p.script, "\n"), p.name)
	p.script = nil
}

func (p *page) forget() {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script, p.events = nil, nil
}

// typed appends to the text.
func (p *page) typed(s string) {
	p.mu.Lock()
	p.text += s
	p.mu.Unlock()
	p.MarkDirty()
}

// shows returns the text.
func (p *page) shows() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

// offered returns what the page was offered as unsaved.
func (p *page) offered() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.unsaved)
}

// count returns the number of events of the type.
func (p *page) count(t autosave.EventType) (n int) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Type == t {
			n++
		}
	}
	return n
}

// saved returns what everybody would read.
func (w *world) saved() string {
	w.Helper()
	content, err := w.disk.Page().Read(w.Context(), autosave.Current)
	require.NoError(w, err)
	return string(content)
}

// generations returns the contents that are kept, the current one first.
func (w *world) generations() (contents []string) {
	w.Helper()
	s := w.disk.Page()
	all, err := s.List(w.Context())
	require.NoError(w, err)
	for _, g := range all {
		content, err := s.Read(w.Context(), g.ID)
		require.NoError(w, err)
		contents = append(contents, string(content))
	}
	return contents
}
