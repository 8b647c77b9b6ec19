//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// steps reads and changes the table for one client, one step at a time.
type steps struct {
	options  *Options
	life     context.Context // ends when Close begins
	notifier notifier
	requests requests
	begun    func() // called when the client appears in the table

	order    line // of the operations
	turn     turn // of the goroutine that may use the fields below
	file     tableFile
	liveness liveness
	clientState

	hook func(step string) // for tests: called between the steps
}

// clientState is what a client remembers from one step to the next.
type clientState struct {
	own      []*entry            // this client's entries as the table last had them
	clients  []string            // all clients in the table
	doubt    bool                // the table may have more entries of this client
	moved    bool                // other clients may have removed this client's entries before it moved
	ended    []string            // the entries, and the leases whose records, the next step removes
	number   int64               // of the last version of the table that this client saw
	looked   int64               // when that was, in milliseconds of Unix time
	used     time.Duration       // when the last operation began
	seen     time.Duration       // when this client last saw the table
	leaving  bool                // the next step removes this client from the table
	unlikely map[string]sighting // expiries that cannot be right
	stalled  map[string]sighting // own waiters: how many free waiters were before them
	future   sighting
}

// sighting is an observation that stays valid for a limited time.
type sighting struct {
	what  int64
	since time.Duration
}

// revisit makes a step, finds out whether the blocking clients live, and makes the step again if one of them does not. If the helper ended during
// the step, another one moves the entries of this client to a new liveness file. It waits for no operation, and does not count as use.
func (c *steps) revisit(ctx context.Context, change func(*session) error) error {
	for {
		look, err := c.step(ctx, change)
		c.requests.tellAll(c.own)
		if ctx.Err() != nil || !c.liveness.investigate(ctx, look) && (err != nil || !c.liveness.alive.ended()) {
			return err
		}
	}
}

// step reads the table, changes it and writes it, while no other client can. It no longer waits for the file when Close begins.
func (c *steps) step(ctx context.Context, change func(*session) error) (suspects, error) {
	if !c.turn.take(ctx) {
		return suspects{}, context.Cause(ctx)
	}
	defer c.turn.give()
	if c.life.Err() != nil {
		return suspects{}, context.Cause(c.life)
	}
	open, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(c.life, func() { end(errClosed) })()
	for cleared := false; ; cleared = true {
		rested := c.liveness.alive.file == nil
		if rested || cleared || c.liveness.alive.file.ended() {
			c.openAnew()
			if err := c.liveness.begin(ctx); err != nil {
				return suspects{}, err
			}
			if rested {
				c.notifier.listen()
				c.begun()
			} else {
				c.move()
			}
		}
		c.at("alive")
		if look, err := c.stepLocked(open, change); !errors.Is(err, errCleared) {
			return look, err
		}
	}
}

// openAnew makes the next calls open all folders again: after the site's data was cleared, former folders lead to the present files, but
// under other locks, so that each client that began since then seems to be dead.
func (c *steps) openAnew() {
	c.liveness.alive.dir.forget()
	c.file.open = false
}

// errCleared says that the table and the liveness file of this client are not those that it has written.
var errCleared = errors.New("site data cleared")

// move gives the entries of this client to its new liveness file: the worker that had the former one open has ended, or the site's
// data was cleared.
func (c *steps) move() {
	c.moved = true
	c.own = slices.DeleteFunc(c.own, func(e *entry) bool { return e.state == present })
	for _, e := range c.own {
		e.client = c.liveness.alive.id
	}
}

// stepLocked is step for a caller that has the turn and an open liveness file.
func (c *steps) stepLocked(ctx context.Context, change func(*session) error) (suspects, error) {
	s, err := c.transact(ctx, change)
	c.at("closed")
	if s != nil {
		c.notifier.notify(s.notify)
		if s.warning != "" && c.options.Warn != nil {
			c.options.Warn(s.warning)
		}
		return s.look, err
	}
	return suspects{}, err
}

// transact makes a step: it changes the table while no other client can read or change it. If it returns an error and a
// session, change returned the error, and the step was made nevertheless.
//
// The step is decided on the content that this client knows. Options.Tables writes it if the file still has that
// content, and otherwise returns the current content: a compare-and-swap.
func (c *steps) transact(ctx context.Context, change func(*session) error) (*session, error) {
	for {
		s, refused := c.decide(c.file.image, change)
		c.at("decided")
		if s != nil && s.lacks && c.liveness.alive.removed(ctx) {
			c.file.client = lock.NewID()
			return nil, errCleared
		}
		told := s
		if s == nil {
			told = &session{} // nothing is written
		}
		same, err := c.file.exchange(ctx, true, told)
		switch {
		case err != nil && len(told.patches) > 0:
			return nil, c.unwritten(ctx, err)
		case err != nil:
			return nil, c.file.explain(ctx, err)
		case !same:
			continue
		case s == nil:
			return nil, refused
		}
		s.written()
		return s, refused
	}
}

func (c *steps) at(name string) {
	if c.hook != nil {
		c.hook(name)
	}
}

// decide computes the new table and the writes for it from the file's content. It returns no session if it cannot
// decide on that content. A decision without a write has no effect, because the content may have been an old one.
func (c *steps) decide(image []byte, change func(*session) error) (s *session, refused error) {
	s = &session{steps: c, living: &c.liveness, me: c.liveness.alive.id, now: c.options.Clock.Now(), before: clones(c.own)}
	if err := s.read(image); err != nil {
		return nil, err
	}
	s.rejoin()
	s.compare()
	s.removeDead()
	s.changed = s.t.agree(s.me, s.before) || s.changed
	s.addPresence()
	s.removeEnded()
	s.recover()
	refused = change(s)
	s.grant(everything)
	s.compose()
	return s, refused
}

// unwritten explains why a step was not written. Nothing says how much of it is in the file.
func (c *steps) unwritten(ctx context.Context, err error) error {
	c.doubt = true
	var meant *lock.Error // errors of the browser cannot be compared
	if explained := c.file.explain(ctx, err); errors.As(explained, &meant) || ctx.Err() != nil {
		return explained
	}
	return unsupported(c.file.path()+": the file cannot be written", err)
}

// patient returns a context that ends with why when this client has made no step for stepLimit, or up to a fifth less. A long line of its
// operations is no silence of the browser. A thread that stands still counts a fifth at most.
func (c *steps) patient(ctx context.Context, why error) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	last := c.seen
	go func() {
		for left := 5; left > 0; left-- {
			if wait.For(ctx, stepLimit/5) != nil {
				return
			}
			if last != c.seen {
				last, left = c.seen, 5
			}
		}
		end(why)
	}()
	return ctx, func() { end(nil) }
}

// nothing is a step that only looks.
func nothing(*session) error { return nil }

// look reads the table without changing it, and leaves out clients that are gone.
func (c *steps) look(ctx context.Context) (*table, error) {
	t, err := c.glance(ctx)
	if err != nil {
		return nil, err
	}
	var clients []string
	for _, e := range t.queue {
		if e.state != present && !slices.Contains(clients, e.client) {
			clients = append(clients, e.client)
		}
	}
	c.liveness.investigate(ctx, suspects{clients: clients})
	t.queue = slices.DeleteFunc(t.queue, func(e *entry) bool { return c.liveness.dead[e.client] })
	return t, context.Cause(ctx)
}

// glance reads the table as it is.
func (c *steps) glance(ctx context.Context) (*table, error) {
	if !c.turn.take(ctx) {
		return nil, context.Cause(ctx)
	}
	defer c.turn.give()
	image, err := c.file.content(ctx)
	if isNamed(err, notFound) {
		return &table{}, nil
	}
	if err != nil {
		return nil, c.file.explain(ctx, err)
	}
	now, _, err := newest(image)
	if errors.Is(err, errFuture) {
		return nil, &lock.Error{Code: lock.CodeFallbackConflict, Err: errFuture, Detail: "reload this page"}
	}
	if t, broken := decode(now.text); broken == nil {
		if t.find(c.liveness.alive.id) == nil {
			c.openAnew()
		}
		return t, nil
	}
	// The content is lost; what this client knows of itself is not.
	return &table{queue: clones(c.own)}, nil
}

// idle reports whether this client has had nothing but its presence in the table for some time.
func (c *steps) idle() bool {
	return len(c.own) <= 1 && !c.doubt && c.options.Clock.Now().Mono-c.used >= linger
}

// depart removes everything of this client. The caller has the turn.
func (c *steps) depart(ctx context.Context) error {
	c.own, c.leaving = nil, true
	_, err := c.stepLocked(ctx, nothing)
	c.own, c.leaving = nil, false
	c.liveness.alive.end(ctx)
	return err
}

func clones(entries []*entry) (all []*entry) {
	for _, e := range entries {
		all = append(all, e.clone())
	}
	return all
}
