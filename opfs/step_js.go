//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

const (
	stepLimit = 5 * time.Second // for a step that no caller bounds
	shortest  = time.Millisecond
	longest   = 4 * time.Millisecond // between two attempts to open a file
)

// session is the table while this client has it open. From its opening to its closing
// nothing waits: a tab that is frozen is frozen between two tasks, and must not keep the
// file open then.
type session struct {
	c       *FileLocks
	now     lock.Instant
	t       *table
	slot    slot
	all     []slot
	restart bool // the file is written anew
	changed bool
	gave    map[string]bool // own entries removed on purpose
	ring    []string        // who is to look at the table
	warning string
	look    suspects

	optional *entry // wants an answer, not a place in the queue
	refuse   error  // that answer, where it is no
}

// suspects are the clients that bar the way and may be gone.
type suspects struct {
	clients   []string
	roll      time.Time // where not zero: the recovery that waits for all who live
	strangers []string  // have a file, but no entry
}

// visit makes a step, finds out whether those who bar the way live, and makes it again
// where one of them does not. change may be called several times.
func (c *FileLocks) visit(ctx context.Context, change func(*session) error) error {
	c.used = c.options.Clock.Now().Mono
	return c.revisit(ctx, change)
}

// revisit is visit for the keeper, which does not count as use.
func (c *FileLocks) revisit(ctx context.Context, change func(*session) error) error {
	for {
		look, err := c.step(ctx, change)
		if ctx.Err() != nil || !c.investigate(ctx, look) {
			return err
		}
	}
}

// step reads the table, changes it and writes it, while nobody else can.
func (c *FileLocks) step(ctx context.Context, change func(*session) error) (suspects, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return suspects{}, context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	if c.life.Err() != nil {
		return suspects{}, context.Cause(c.life)
	}
	begun, err := c.alive.begin(ctx)
	if err != nil {
		return suspects{}, err
	}
	if begun {
		c.bell()
		c.work.Go(c.keep)
		if c.strangers, err = c.alive.others(ctx); err != nil {
			return suspects{}, err
		}
		c.met = 0
	}
	c.at("alive")
	return c.stepLocked(ctx, change)
}

// stepLocked is step for who has the turn and an open liveness file.
func (c *FileLocks) stepLocked(ctx context.Context, change func(*session) error) (suspects, error) {
	h, err := c.openTable(ctx, true)
	if err != nil {
		return suspects{}, err
	}
	s, err := c.run(ctx, h, change)
	h.close()
	c.at("closed")
	if s != nil {
		c.bell().ring(s.ring)
		if s.warning != "" && c.options.Warn != nil {
			c.options.Warn(s.warning)
		}
		return s.look, err
	}
	return suspects{}, err
}

func (c *FileLocks) at(name string) {
	if c.hook != nil {
		c.hook(name)
	}
}

// openTable opens the file for this client alone.
func (c *FileLocks) openTable(ctx context.Context, create bool) (*handle, error) {
	for pause := shortest; ; pause = min(2*pause, longest) {
		if !c.open {
			file, err := c.dir.file(ctx, lockFile, create)
			if err != nil {
				return nil, err
			}
			c.file, c.open = file, true
		}
		h, err := openHandle(ctx, c.file)
		switch {
		case err == nil:
			return h, nil
		case isNamed(err, inUse...):
			if err := sleep(ctx, pause/2+rand.N(pause)); err != nil {
				return nil, err
			}
		case isNamed(err, notFound):
			c.open = false // removed, or something else in its place
			if !create {
				return nil, err
			}
		default:
			c.open = false
			return nil, c.dir.explain(ctx, c.dir.String()+"/"+lockFile, err)
		}
	}
}

// run does what a step does while the file is open.
func (c *FileLocks) run(ctx context.Context, h *handle, change func(*session) error) (*session, error) {
	c.at("opened")
	image, err := h.read(ctx, maxImage)
	if err != nil {
		return nil, c.dir.explain(ctx, c.dir.String()+"/"+lockFile, err)
	}
	c.at("read")
	s := &session{c: c, now: c.options.Clock.Now(), gave: make(map[string]bool)}
	if err := s.read(image); err != nil {
		return nil, err
	}
	own := c.own
	s.compare(own)
	s.bury()
	s.changed = s.t.agree(c.alive.id, own) || s.changed
	s.appear()
	s.recover()
	refused := change(s)
	s.settle()
	if refused == nil {
		refused = s.refuse
	}
	if err := s.write(ctx, h); err != nil {
		c.doubt = true
		return nil, err
	}
	c.doubt = false
	c.at("written")
	s.adopt(own)
	return s, refused
}

// write stores the table where it changed.
func (s *session) write(ctx context.Context, h *handle) error {
	c := s.c
	if !s.changed {
		c.number = s.slot.number
		return nil
	}
	text := s.t.encode()
	number, patches := s.slot.number+1, following(s.slot, s.all, text)
	if s.restart {
		number = max(s.slot.number, c.number, s.now.Wall.UnixMilli()) + 2
		patches = restarting(s.slot, s.all, number, text)
	}
	for _, p := range patches {
		if err := h.write(ctx, p.offset, p.data); err != nil {
			return c.unwritten(ctx, err)
		}
	}
	if s.restart { // what lies behind is garbage, and read at every step
		last := patches[1]
		if _, err := call(ctx, h.value, "truncate", last.offset+len(last.data)); err != nil {
			return c.unwritten(ctx, err)
		}
	}
	c.number = number
	for _, e := range s.t.next() {
		if e.client != c.alive.id {
			s.ring = append(s.ring, e.id)
		}
	}
	return nil
}

func (c *FileLocks) unwritten(ctx context.Context, err error) error {
	path := c.dir.String() + "/" + lockFile
	if explained := c.dir.explain(ctx, path, err); explained != err || ctx.Err() != nil {
		return explained
	}
	return unsupported(path+": the file cannot be written", err)
}

// adopt remembers what the table has of this client, and tells those whom it concerns.
func (s *session) adopt(before []*entry) {
	c := s.c
	c.own, c.clients = nil, nil
	for _, e := range s.t.queue {
		if e.state == present {
			c.clients = append(c.clients, e.client)
		}
		if e.client == c.alive.id {
			c.own = append(c.own, e.clone())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.own {
		if w := c.waiters[e.id]; w != nil && e.state == granted {
			select {
			case w.granted <- struct{}{}:
			default:
			}
		}
	}
	for _, mine := range before {
		g := c.grants[mine.id]
		if g == nil || mine.state != granted || s.gave[mine.id] {
			continue
		}
		if there := s.t.find(mine.id); there == nil || len(there.wants) < len(mine.wants) {
			g.lose()
		}
	}
}

// read makes the table of the file's content. A table of which something may be missing
// is in recovery afterwards.
func (s *session) read(image []byte) error {
	c := s.c
	var err error
	s.slot, s.all, err = newest(image)
	if err == errFuture {
		return c.beforeItsTime(s, image)
	}
	s.t = &table{}
	if err == nil || err == errTorn {
		if t, broken := decode(s.slot.text); broken != nil {
			err = broken
		} else {
			s.t = t
		}
	}
	if err == nil && s.slot.number < c.number {
		err = errors.New("the file is an old version of itself")
	}
	if err != nil {
		s.startOver(err, len(image) == 0 && c.number == 0)
	}
	return nil
}

// startOver begins a recovery.
func (s *session) startOver(why error, unused bool) {
	s.restart, s.changed = true, true
	s.t.token = max(s.t.token, s.now.Wall.UnixMilli())
	s.t.recovery = &recovery{until: s.now.Wall.Add(s.c.options.TTL).Truncate(time.Millisecond)}
	s.ring = append(s.ring, everyone)
	if !unused {
		s.warning = s.c.dir.String() + "/" + lockFile + " was damaged (" + why.Error() +
			") and is written anew; nothing is granted until all open tabs have said what they hold"
	}
}

// beforeItsTime refuses a file of a newer version for as long as somebody changes it, and
// for the TTL after that.
func (c *FileLocks) beforeItsTime(s *session, image []byte) error {
	mark := int64(len(image)) << 32
	for _, b := range image {
		mark = mark*31 + int64(b)
	}
	if c.future.what != mark {
		c.future = sighting{mark, s.now.Mono}
	}
	if s.now.Mono-c.future.since < c.options.TTL {
		return &lock.Error{Code: lock.CodeFallbackConflict, Operation: lock.OpAcquire, Err: errors.Join(lock.ErrDenied, errFuture),
			Detail: "another tab runs a newer version of Holdfast; reload this page"}
	}
	s.t = &table{}
	s.startOver(errFuture, false)
	return nil
}

// compare begins a recovery where the table is whole, but not the one that the clients
// who live wrote to: somebody replaced the file.
func (s *session) compare(own []*entry) {
	c := s.c
	c.strangers = slices.DeleteFunc(c.strangers, s.t.knows)
	switch {
	case s.t.recovery != nil: // they will say what they hold
		c.strangers = nil
	case s.t.lacks(own):
		s.startOver(errReplaced, false)
	case len(c.strangers) == 0:
	case c.met == 0 || s.now.Mono-c.met < acquaintance:
		s.look.strangers = c.strangers
	default:
		s.startOver(errReplaced, false)
		c.strangers = nil
	}
}

var errReplaced = errors.New("it was replaced")

// appear puts this client into the table, so that others can tell a table that lacks it.
func (s *session) appear() {
	if me := s.c.alive.id; s.t.find(me) == nil && !s.c.leaving {
		s.t.queue = append(s.t.queue, &entry{id: me, client: me, state: present})
		s.changed = true
	}
}

// bury removes the entries of clients that are known to be gone.
func (s *session) bury() {
	for _, e := range slices.Clone(s.t.queue) {
		if s.c.dead[e.client] {
			s.t.remove(e)
			s.changed = true
		}
	}
}
