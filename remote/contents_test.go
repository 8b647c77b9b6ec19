package remote_test

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// machine is one browser with a document, its disk and a store of each.
type machine struct {
	document *remote.Document
	store    *remote.Contents
	disk     *autosavetest.Disk
	storage  *autosavetest.DraftStorage // of drafts; may be nil
}

func (n *internet) machine(session string) machine {
	return n.machineWith(session, autosavetest.NewDisk())
}

// machineWith is a machine that was used before.
func (n *internet) machineWith(session string, disk *autosavetest.Disk, change ...func(*remote.Config)) machine {
	c := remote.Config{Server: &browser{net: n, session: session}, URL: "https://locks.example", Document: "project",
		Local: lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: locktest.NewSpace().Client(session)}}
	for _, f := range change {
		f(&c)
	}
	d := remote.NewDocument(c)
	return machine{document: d, disk: disk, store: remote.NewContents(d, autosave.NewLayout(disk.Client(), autosavetest.SHA256), autosavetest.SHA256)}
}

// lock takes the lock and returns the token.
func (m machine) lock(t *testing.T) (int64, func()) {
	t.Helper()
	b := m.document.Backend()
	g, err := b.Locker.Request(context.Background(), lock.Request{Wants: []lock.Want{{Name: b.Resource, Mode: lock.Exclusive}}})
	require.NoError(t, err)
	now := time.Now()
	token, err := b.Records.Claim(context.Background(), lock.Record{Resource: b.Resource, AcquiredAt: now, ExpiresAt: now.Add(30 * time.Second)}, false)
	require.NoError(t, err)
	require.NoError(t, m.store.Fence(context.Background(), token))
	return token, func() { require.NoError(t, g.Release(context.Background())) }
}

// lockedMachine returns a machine that holds the lock of the document until the test ends.
func lockedMachine(t *testing.T) (n *internet, m machine, token int64) {
	n = newInternet()
	m = n.machine("A")
	token, release := m.lock(t)
	t.Cleanup(release)
	return n, m, token
}

func (m machine) save(t *testing.T, token int64, text string) autosave.Generation {
	t.Helper()
	g, err := m.store.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes(text), Token: token, SavedAt: time.Now()})
	require.NoError(t, err)
	time.Sleep(time.Millisecond)
	return g
}

func (m machine) read(t *testing.T, id string) string {
	t.Helper()
	b, err := m.store.Read(context.Background(), id)
	require.NoError(t, err)
	return string(b)
}

func (m machine) list(t *testing.T) []autosave.Generation {
	t.Helper()
	all, err := m.store.List(context.Background())
	require.NoError(t, err)
	return all
}

func TestServerHasCurrentContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := n.machine("A"), n.machine("B")
		assert.Empty(t, a.list(t))
		_, err := a.store.Read(context.Background(), autosave.Current)
		require.ErrorIs(t, err, autosave.ErrNotFound)

		token, release := a.lock(t)
		one, two := a.save(t, token, "one"), a.save(t, token, "two")
		assert.True(t, two.Current)
		release()
		assert.Equal(t, "two", b.read(t, autosave.Current))
		theirs := b.list(t)
		require.Len(t, theirs, 1, "somebody else's history is not this machine's")
		assert.Equal(t, two.SHA256, theirs[0].SHA256)
		assert.Equal(t, "two", b.read(t, theirs[0].ID))

		token, release = b.lock(t)
		b.save(t, token, "three")
		release()
		mine := a.list(t)
		require.Len(t, mine, 3)
		assert.Equal(t, []bool{true, false, false}, []bool{mine[0].Current, mine[1].Current, mine[2].Current})
		assert.Equal(t, "three", a.read(t, mine[0].ID))
		assert.Equal(t, []string{two.ID, one.ID}, []string{mine[1].ID, mine[2].ID})
		assert.Equal(t, "one", a.read(t, one.ID))
		_, err = a.store.Read(context.Background(), "1-1")
		require.ErrorIs(t, err, autosave.ErrNotFound)
	})
}

// A new editor lists and then reads the current content with one download.
func TestListedContentIsNotDownloadedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := n.machine("A"), n.machine("B")
		token, release := a.lock(t)
		a.save(t, token, "text")
		release()
		for _, m := range []machine{a, b} { // one that knows the generation, and one that does not
			before := len(n.requests())
			current := m.list(t)[0].ID
			assert.Equal(t, "text", m.read(t, current))
			assert.Len(t, n.requests(), before+1)
			assert.Equal(t, "text", m.read(t, current), "the content is still there after it was read once")
		}

		before := len(n.requests())
		current := b.list(t)[0].ID
		token, release = a.lock(t)
		defer release()
		a.save(t, token, "newer")
		assert.Equal(t, "newer", b.read(t, autosave.Current), "the content that is current now, not at the time of the list")
		assert.Equal(t, "text", b.read(t, current))
		assert.Greater(t, len(n.requests()), before+1)
	})
}

func TestServerRefusesSavesWithoutLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := n.machine("A"), n.machine("B")
		old, release := a.lock(t)
		release()
		token, release := b.lock(t)
		defer release()
		b.save(t, token, "theirs")
		_, err := a.store.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes("late"), Token: old, SavedAt: time.Now()})
		require.ErrorIs(t, err, autosave.ErrStaleToken)
		assert.Equal(t, "theirs", b.read(t, autosave.Current))
		assert.Len(t, a.list(t), 1)
	})
}

func TestSavingDuringServerErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.machine("A")
		token, _ := a.lock(t)
		commit := autosave.Commit{Content: autosave.Bytes("x"), Token: token, SavedAt: time.Now()}
		for _, c := range []struct {
			reply remote.Reply
			want  error
		}{
			{remote.Reply{Status: 503, Error: "unavailable", Message: "The store is away."}, autosave.ErrWriteFailed},
			{remote.Reply{Status: 429}, autosave.ErrWriteFailed},
			{remote.Reply{Status: 400, Error: "invalid_request"}, autosave.ErrWriteFailed},
			{remote.Reply{Status: 413}, autosave.ErrQuota},
		} {
			n.refuse = c.reply
			_, err := a.store.Commit(context.Background(), commit)
			require.ErrorIs(t, err, c.want)
			if c.reply.Status != 413 {
				_, err = a.store.List(context.Background())
				require.ErrorIs(t, err, autosave.ErrReadFailed)
			}
		}
		n.refuse = remote.Reply{}
		n.set(true)
		_, err := a.store.Commit(context.Background(), commit)
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		n.set(false)
		commit.Content = autosave.Bytes(bytes.Repeat([]byte{'x'}, 8<<20+1))
		_, err = a.store.Commit(context.Background(), commit)
		require.ErrorIs(t, err, autosave.ErrQuota)

		a.disk.SetCapacity(1)
		assert.True(t, a.save(t, token, "saved, though no history can be kept").Current)
		assert.Len(t, a.list(t), 1)
	})
}

// writer is a page with an editor in one browser.
type writer struct {
	*autosave.Saver
	name       string
	mu         sync.Mutex
	text       string
	draft      int // counts the texts that were loaded
	snapshot   int64
	pageDrafts *autosavetest.PageDrafts // where it journals; may be nil
	base       string
	clean      int64 // the last snapshot that is saved
	conflicts  []autosave.Conflict
	readonly   []lock.ReadonlyReason
	state      autosave.State       // of the last event
	types      []autosave.EventType // of the events that are not about the phase
}

// told returns the state of the last event.
func (w *writer) told() autosave.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *writer) events() []autosave.EventType {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.types)
}

func (w *writer) type_(text string) {
	w.mu.Lock()
	w.text += text
	if w.pageDrafts != nil {
		w.snapshot++
		w.pageDrafts.Journal(w.describe(), []byte(w.text))
	}
	w.mu.Unlock()
	w.MarkDirty()
}

// describe describes the draft of the page's present text. The mutex is held.
func (w *writer) describe() autosave.Draft {
	return autosave.Draft{ID: w.name + "-" + strconv.Itoa(w.draft), Number: w.snapshot, Base: w.base, At: time.Now(), OwnerID: w.name}
}

func (w *writer) now() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text
}

func (n *internet) writer(t *testing.T, session string) *writer {
	return n.machine(session).writer(t, session)
}

// listen follows the events of the Saver, as a page does.
func (w *writer) listen(e autosave.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = e.State
	if e.Type != autosave.EventPhase {
		w.types = append(w.types, e.Type)
	}
	if e.Type == autosave.EventPreview {
		w.text = string(e.Content)
	}
	if e.Type == autosave.EventEditable && e.Loaded {
		w.text = string(e.Content)
		w.draft++
	}
	if e.Type == autosave.EventEditable {
		w.base = e.Base
	}
	if e.Type == autosave.EventSaved {
		w.base, w.clean = e.Generation.ID, e.Generation.Number
		if w.pageDrafts != nil {
			w.pageDrafts.Saved(e.Generation.Draft, e.Generation.Number)
		}
	}
	if e.Type == autosave.EventConflict {
		w.conflicts = append(w.conflicts, *e.Conflict)
	}
	if e.Type == autosave.EventReadonly {
		w.readonly = append(w.readonly, e.Reason)
	}
}

// saved opens a page that saves a text.
func (m machine) saved(t *testing.T, session, text string) *writer {
	w := m.writer(t, session)
	sleep(time.Second)
	w.type_(text)
	sleep(time.Second)
	return w
}

func (m machine) writer(t *testing.T, session string, change ...func(*autosave.Config)) *writer {
	manager, err := lock.NewManager(lock.Config{OwnerID: session, Backends: []lock.Backend{m.document.Backend()}})
	require.NoError(t, err)
	w := &writer{name: session}
	if m.storage != nil {
		w.pageDrafts = m.storage.PageDrafts(nil)
		w.pageDrafts.Unsaved = func() (autosave.Draft, []byte, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.describe(), []byte(w.text), w.snapshot > w.clean
		}
	}
	config := autosave.Config{Store: m.store, Locks: manager,
		Snapshot: func(context.Context) (autosave.Content, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.snapshot++
			return autosave.Numbered{Content: autosave.Bytes(w.text), Draft: w.describe().ID, Number: w.snapshot}, nil
		},
		Listener: w.listen}
	if w.pageDrafts != nil {
		config.Drafts = w.pageDrafts
	}
	for _, f := range change {
		f(&config)
	}
	w.Saver, err = autosave.New(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = w.Dispose(context.Background())
		assert.NoError(t, manager.Close(context.Background()))
	})
	return w
}

// Two machines write one document in alternation, and neither overwrites the other.
func TestEditorsOnTwoMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.writer(t, "A")
		sleep(time.Second)
		b := n.writer(t, "B")
		sleep(time.Second)
		assert.False(t, a.State().ReadOnly)
		assert.True(t, b.State().ReadOnly)

		a.type_("from A, ")
		sleep(time.Second)
		a.type_("saved as it leaves, ")
		require.NoError(t, a.Dispose(context.Background()))
		sleep(time.Second)
		assert.False(t, b.State().ReadOnly, "the page was on standby")
		assert.Equal(t, "from A, saved as it leaves, ", b.now())

		b.type_("from B")
		sleep(time.Second)
		assert.Equal(t, "from A, saved as it leaves, from B", string(n.content))
	})
}

// After an interruption longer than the TTL, the page keeps its unsaved text, and does not overwrite the next editor's
// content.
func TestDisconnectedEditor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.machine("A").saved(t, "A", "saved, ")
		n.set(true)
		a.type_("not saved")
		sleep(40 * time.Second)
		assert.True(t, a.State().ReadOnly)
		assert.Positive(t, a.State().PendingBytes)
		n.set(false)
		b := n.writer(t, "B")
		sleep(time.Minute)
		b.type_("by B")
		sleep(time.Second)
		assert.NotContains(t, string(n.content), "not saved")
		assert.Equal(t, b.now(), string(n.content))
	})
}

// A document at a path has an id of its own, which the server splits again.
func TestIDsOfDocuments(t *testing.T) {
	d := remote.NewDocument(remote.Config{URL: "https://locks.example", Document: "plan"})
	for want, path := range map[string][]string{"plan": nil, "plan~.part~201": {"part 1"}, "plan~.a~.b": {"a", "b"}, "plan~.a~2Fb": {"a/b"}} {
		id, err := d.ID(path)
		require.NoError(t, err)
		assert.Equal(t, want, id)
	}
	for _, path := range [][]string{{strings.Repeat("x", 123)}, slices.Repeat([]string{"x"}, 15)} {
		_, err := d.ID(path)
		assert.ErrorIs(t, err, lock.ErrInvalidArgument)
	}
}
