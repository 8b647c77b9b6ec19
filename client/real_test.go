package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

func TestAcquireRenewRelease(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.client(t, client.Config{Name: "Ann"}), s.client(t, client.Config{Name: "Bob"})
	lease := acquire(t, ann, client.Request{Document: "plan", TTL: 4 * time.Second})
	assert.Equal(t, 4*time.Second, lease.TTL())
	_, err := bob.Acquire(t.Context(), client.Request{Document: "plan"})
	require.ErrorIs(t, err, client.ErrDenied)
	var e *client.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "Ann", e.Holders[0].HolderName)
	assert.Equal(t, "acquire the document plan: Somebody else holds a lock in the way. Wait for it, or try again later (acquire_denied)", err.Error())

	_, err = bob.Acquire(t.Context(), client.Request{Document: "plan", Wait: 5 * time.Second}) // longer than the TTL
	require.ErrorIs(t, err, client.ErrTimeout)
	require.NoError(t, lease.Err())
	require.NoError(t, lease.Renew(t.Context()))
	release(t, lease)
	assert.ErrorIs(t, lease.Err(), client.ErrReleased)
	assert.NoError(t, lease.Release(t.Context()))
	assert.ErrorIs(t, lease.Renew(t.Context()), client.ErrReleased)
	select {
	case <-lease.Lost():
		assert.Fail(t, "a release is no loss")
	default:
	}
	next := acquire(t, bob, client.Request{Document: "plan"})
	assert.Greater(t, next.Token(), lease.Token())
}

// Two acquisitions of one client exclude each other, on servers with and without users, with the same key too.
func TestOneClientExcludesItself(t *testing.T) {
	t.Parallel()
	users, anonymous := startWithUsers(t), start(t, nil)
	for name, c := range map[string]*client.Client{"users": users.as(t, "ann"), "secret": anonymous.client(t, client.Config{}), "key, but no users": anonymous.as(t, "ann")} {
		first := acquire(t, c, client.Request{Document: "plan"})
		_, err := c.Acquire(t.Context(), client.Request{Document: "plan"})
		assert.ErrorIs(t, err, client.ErrDenied, name)
		release(t, first)
		release(t, acquire(t, c, client.Request{Document: "plan"}))
	}
	first := acquire(t, users.as(t, "ann"), client.Request{Document: "both"})
	_, err := users.as(t, "ann").Acquire(t.Context(), client.Request{Document: "both"})
	assert.ErrorIs(t, err, client.ErrDenied)
	release(t, first)
}

func TestPlacesSlotsAndSharing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.client(t, client.Config{})
	pool := client.Request{Paths: [][]string{{"pool"}}, Slots: 2}
	one, two := acquire(t, c, pool), acquire(t, c, pool)
	assert.ElementsMatch(t, []int{0, 1}, []int{one.Slot(), two.Slot()})
	_, err := c.Acquire(t.Context(), pool)
	assert.ErrorIs(t, err, client.ErrDenied)
	release(t, one)
	release(t, two)

	shared := client.Request{Paths: [][]string{{"book"}}, Mode: client.Shared}
	readers := []*client.Lease{acquire(t, c, shared), acquire(t, c, shared)}
	_, err = c.Acquire(t.Context(), client.Request{Paths: [][]string{{"other"}, {"book"}}})
	assert.ErrorIs(t, err, client.ErrDenied)
	other := acquire(t, c, client.Request{Paths: [][]string{{"other"}}}) // nothing was taken
	for _, l := range append(readers, other) {
		release(t, l)
	}
	// A document below another one is a place below it.
	below := acquire(t, c, client.Request{Document: "plan~.part~201"})
	_, err = c.Acquire(t.Context(), client.Request{Document: "plan"})
	assert.ErrorIs(t, err, client.ErrDenied)
	list, err := c.Locks(t.Context(), client.DocumentPath("plan")...)
	require.NoError(t, err)
	require.Len(t, list.Holders, 1)
	assert.Equal(t, [][]string{{"documents", "plan", "part 1"}}, list.Holders[0].Paths)
	release(t, below)
}

func TestNestedAcquisitions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.client(t, client.Config{}), s.client(t, client.Config{})
	a, b := client.Request{Document: "a", Wait: client.Forever}, client.Request{Document: "b", Wait: client.Forever}
	inA, inB := acquire(t, ann, a), acquire(t, bob, b)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()

	_, err := ann.Acquire(inA.Context(ctx), a)
	require.ErrorIs(t, err, client.ErrReentrant)
	_, err = ann.Acquire(inA.Context(ctx), client.Request{Paths: [][]string{{"documents", "a", "below"}}, Wait: client.Forever})
	require.ErrorIs(t, err, client.ErrReentrant)

	sibling := client.Request{Document: "c", Wait: client.Forever}
	inC, err := ann.Acquire(inA.Context(ctx), sibling)
	require.NoError(t, err)
	_, err = ann.Acquire(inA.Context(ctx), sibling) // around it is inA only, and inC has the same owner
	require.ErrorIs(t, err, client.ErrReentrant)
	require.ErrorContains(t, err, "or another one within that lease")
	release(t, inC)

	failed := make(chan error, 2)
	nested := func(outer *client.Lease, c *client.Client, r client.Request) {
		l, err := c.Acquire(outer.Context(ctx), r)
		if err == nil {
			err = l.Release(ctx)
		} else {
			err = errors.Join(err, outer.Release(ctx))
		}
		failed <- err
	}
	go nested(inA, ann, b)
	go nested(inB, bob, a)
	errs := errors.Join(<-failed, <-failed)
	require.ErrorIs(t, errs, client.ErrDeadlock)
	require.NotErrorIs(t, errs, client.ErrAborted)
}

// Acquisitions that are not nested are no deadlock, although one client holds what the other waits for.
func TestIndependentAcquisitionsAreNoDeadlock(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.client(t, client.Config{}), s.client(t, client.Config{})
	a, b := client.Request{Document: "a", Wait: client.Forever}, client.Request{Document: "b", Wait: client.Forever}
	inA, inB := acquire(t, ann, a), acquire(t, bob, b)
	got := make(chan error, 2)
	wait := func(c *client.Client, r client.Request) {
		l, err := c.Acquire(t.Context(), r)
		if err == nil {
			err = l.Release(t.Context())
		}
		got <- err
	}
	go wait(ann, b)
	go wait(bob, a)
	require.Eventually(t, func() bool {
		list, err := ann.Locks(t.Context(), "documents")
		return err == nil && len(list.Waiters) == 2
	}, 10*time.Second, 5*time.Millisecond)
	release(t, inA)
	release(t, inB)
	require.NoError(t, <-got)
	require.NoError(t, <-got)
}

func TestContents(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	ann, bob, root := s.as(t, "ann"), s.as(t, "bob"), s.as(t, "root")
	_, err := bob.Get(t.Context(), "plan", client.GetOptions{})
	require.ErrorIs(t, err, client.ErrNotFound)
	lease := acquire(t, ann, client.Request{Document: "plan"})
	first, err := ann.Put(t.Context(), lease.Fence(), "plan", []byte("one"), client.PutOptions{IfAbsent: true})
	require.NoError(t, err)
	_, err = ann.Put(t.Context(), lease.Fence(), "plan", []byte("again"), client.PutOptions{IfAbsent: true})
	require.ErrorIs(t, err, client.ErrPrecondition)
	second, err := ann.Put(t.Context(), lease.Fence(), "plan", []byte("two"), client.PutOptions{IfMatch: first.ETag})
	require.NoError(t, err)

	got, err := bob.Get(t.Context(), "plan", client.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "two", string(got.Data))
	assert.Equal(t, second.ETag, got.ETag)
	assert.Equal(t, lease.Token(), got.Token)
	assert.Equal(t, second.SavedAt, got.SavedAt)
	_, err = bob.Get(t.Context(), "plan", client.GetOptions{IfNoneMatch: got.ETag})
	require.ErrorIs(t, err, client.ErrNotModified)
	history, err := bob.History(t.Context(), "plan")
	require.NoError(t, err)
	require.Len(t, history, 2)
	assert.Equal(t, got.Generation, history[0].Generation)
	old, err := bob.Get(t.Context(), "plan", client.GetOptions{Generation: history[1].Generation})
	require.NoError(t, err)
	assert.Equal(t, "one", string(old.Data))

	_, err = bob.Put(t.Context(), lease.Fence(), "plan", nil, client.PutOptions{})
	require.ErrorIs(t, err, client.ErrNotHolder)
	// Another program of the same user, which has been given the fence, writes too.
	_, err = s.as(t, "ann").Put(t.Context(), client.Fence{Session: lease.Fence().Session, Token: lease.Token()}, "plan", []byte("three"), client.PutOptions{})
	require.NoError(t, err)
	release(t, lease)
	_, err = ann.Put(t.Context(), lease.Fence(), "plan", []byte("late"), client.PutOptions{})
	require.Error(t, err)
	assert.True(t, errors.Is(err, client.ErrStaleToken) || errors.Is(err, client.ErrNotHolder), err)

	for d, err := range bob.Documents(t.Context(), "pl") {
		require.NoError(t, err)
		assert.Equal(t, "plan", d.ID)
		assert.EqualValues(t, len("three"), d.Size)
	}
	require.Error(t, bob.Delete(t.Context(), client.Fence{}, "plan", client.PutOptions{}))
	require.NoError(t, root.Delete(t.Context(), client.Fence{}, "plan", client.PutOptions{}))
	_, err = bob.Get(t.Context(), "plan", client.GetOptions{})
	require.ErrorIs(t, err, client.ErrNotFound)
}

func TestBrokenLockIsLost(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	ann, root := s.as(t, "ann"), s.as(t, "root")
	for name, breaks := range map[string]func() error{
		"document": func() error { return root.Break(t.Context(), "plan", "maintenance") },
		"lease": func() error {
			list, err := root.Locks(t.Context(), client.DocumentPath("plan")...)
			require.NoError(t, err)
			return root.BreakLease(t.Context(), list.Holders[0].LeaseID, "maintenance")
		},
	} {
		lease := acquire(t, ann, client.Request{Document: "plan", TTL: 6 * time.Second}) // a busy machine renews it in time
		ctx := lease.Context(t.Context())
		require.ErrorIs(t, ann.Break(t.Context(), "plan", "I want it"), client.ErrNotAllowed)
		require.NoError(t, breaks(), name)
		select {
		case <-lease.Lost():
		case <-time.After(10 * time.Second):
			require.Fail(t, "the loss was not noticed")
		}
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), client.ErrLost)
		assert.ErrorIs(t, lease.Release(t.Context()), client.ErrLost, name)
		assert.NoError(t, lease.Release(t.Context()), "a second time")
	}
	assert.ErrorIs(t, root.Break(t.Context(), "plan", "maintenance"), client.ErrLockNotFound)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	_, err := s.as(t, "eve").Acquire(t.Context(), client.Request{Document: "plan"})
	require.ErrorIs(t, err, client.ErrUnauthenticated)
	assert.NotContains(t, err.Error(), "eve-key")
	_, err = s.as(t, "ann").Acquire(t.Context(), client.Request{Document: "hidden"})
	require.ErrorIs(t, err, client.ErrNotAllowed)
	short := acquire(t, s.as(t, "ann"), client.Request{Document: "short"})
	assert.Equal(t, 5*time.Second, short.TTL(), "without a TTL, the longest that is allowed")
	_, err = s.as(t, "bob").Acquire(t.Context(), client.Request{Document: "short", TTL: time.Minute})
	require.ErrorIs(t, err, client.ErrNotAllowed)

	ann := s.as(t, "ann")
	for _, r := range []client.Request{{}, {Document: "a/b"}, {Document: ".."}, {Document: "a", Paths: [][]string{{"b"}}}, {Paths: [][]string{{""}}}, {Document: "a", TTL: time.Millisecond}} {
		_, err := ann.Acquire(t.Context(), r)
		assert.ErrorIs(t, err, client.ErrInvalid, "%+v", r)
	}
	_, err = ann.Get(t.Context(), "a/../b", client.GetOptions{})
	assert.ErrorIs(t, err, client.ErrInvalid)
}

func TestWithReleasesAlways(t *testing.T) {
	t.Parallel()
	c := start(t, nil).client(t, client.Config{})
	r := client.Request{Document: "plan"}
	why := errors.New("a failure")
	assert.ErrorIs(t, c.With(t.Context(), r, func(context.Context, *client.Lease) error { return why }), why)
	assert.Panics(t, func() {
		_ = c.With(t.Context(), r, func(context.Context, *client.Lease) error { panic("oh") })
	})
	assert.NoError(t, c.With(t.Context(), r, func(ctx context.Context, _ *client.Lease) error {
		_, err := c.Acquire(ctx, r)
		assert.ErrorIs(t, err, client.ErrReentrant)
		return ctx.Err()
	}))
}

func TestCloseReleases(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.client(t, client.Config{})
	lease := acquire(t, c, client.Request{Document: "plan"})
	require.NoError(t, c.Close(t.Context()))
	assert.ErrorIs(t, lease.Err(), client.ErrReleased)
	_, err := c.Acquire(t.Context(), client.Request{Document: "plan"})
	assert.ErrorIs(t, err, client.ErrInvalid)
	acquire(t, s.client(t, client.Config{}), client.Request{Document: "plan"})
}

// An acquisition that waits when its client is closed ends, and the server keeps nothing of it.
func TestCloseEndsAcquisitions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a, b := s.client(t, client.Config{}), s.client(t, client.Config{})
	held := acquire(t, a, client.Request{Document: "d"})
	failed := make(chan error, 1)
	go func() {
		_, err := b.Acquire(t.Context(), client.Request{Document: "d", Wait: client.Forever})
		failed <- err
	}()
	require.Eventually(t, func() bool { return waiters(t, a) == 1 }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, b.Close(t.Context()))
	select {
	case err := <-failed:
		assert.ErrorIs(t, err, client.ErrInvalid)
		assert.ErrorContains(t, err, "closed")
	case <-time.After(10 * time.Second):
		t.Fatal("the acquisition outlived its client")
	}
	assert.Zero(t, waiters(t, a))
	release(t, held)
	release(t, acquire(t, a, client.Request{Document: "d"}))
}

// waiters returns how many requests wait for the document d.
func waiters(t *testing.T, c *client.Client) int {
	all, err := c.Locks(t.Context(), client.DocumentPath("d")...)
	require.NoError(t, err)
	return len(all.Waiters)
}

// A lease counts from its grant, however long the client has waited for it.
func TestLeaseAfterALongWaitIsHeld(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.client(t, client.Config{}), s.client(t, client.Config{})
	const ttl = 4 * time.Second // long enough for a busy machine to renew the lease
	first := acquire(t, ann, client.Request{Document: "plan"})
	got := make(chan *client.Lease, 1)
	go func() {
		l, err := bob.Acquire(t.Context(), client.Request{Document: "plan", TTL: ttl, Wait: client.Forever})
		assert.NoError(t, err)
		got <- l
	}()
	require.Eventually(t, func() bool {
		all, err := ann.Locks(t.Context(), client.DocumentPath("plan")...)
		return err == nil && len(all.Waiters) == 1 && time.Since(all.Waiters[0].Since) > ttl
	}, time.Minute, 50*time.Millisecond)
	release(t, first)
	second := <-got
	require.NoError(t, second.Err())
	require.NoError(t, second.Renew(t.Context()))
	release(t, second)
}

// stalling keeps back writes of contents: their clients get no answer.
type stalling struct {
	mu      sync.Mutex
	stalled []*http.Request
}

func (s *stalling) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/content") {
		return http.DefaultTransport.RoundTrip(r)
	}
	late := r.Clone(context.Background())
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	late.Body = body
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = append(s.stalled, late)
	return nil, errors.New("the network stalls")
}

// A client gives a write up and deletes the document. The write arrives then.
func TestALateWriteBringsNoDeletedDocumentBack(t *testing.T) {
	t.Parallel()
	s, network := start(t, nil), &stalling{}
	ann := s.client(t, client.Config{Patience: time.Millisecond, HTTP: &http.Client{Transport: network}})
	l := acquire(t, ann, client.Request{Document: "d"})
	_, err := ann.Put(t.Context(), l.Fence(), "d", []byte("text"), client.PutOptions{})
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.NoError(t, ann.Delete(t.Context(), l.Fence(), "d", client.PutOptions{}))
	require.NotEmpty(t, network.stalled)
	for _, r := range network.stalled {
		response, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusConflict, response.StatusCode)
	}
	_, err = ann.Get(t.Context(), "d", client.GetOptions{})
	assert.ErrorIs(t, err, client.ErrNotFound)
	release(t, l)
}
