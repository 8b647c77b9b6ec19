//go:build js && wasm

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/opfs"
	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/wasm/options"
)

// editor is one AutoSave of the page.
type editor struct {
	asker
	before  string // the folder of this AutoSave before its page slept, whose storage works or will work; "" at first
	saver   *autosave.Saver
	channel *jsbridge.Channel
	place   opfs.Place // where its files are; nil if nowhere

	mu sync.Mutex // guards saver
}

// editors are the AutoSaves of a service.
type editors struct {
	mu  sync.Mutex
	all map[int]*editor
}

// autosaveMethods are the methods of an AutoSave that the facade can call. Their argument contains its number.
var autosaveMethods = map[string]func(e *editor, ctx context.Context, arg *options.Reader) (any, error){
	"mark":    (*editor).mark,
	"flush":   (*editor).flush,
	"history": (*editor).history,
	"read":    (*editor).read,
	"restore": (*editor).restore,
	"pin":     (*editor).pin,
	"edit":    (*editor).edit,
	"suspend": (*editor).suspend,
	"resume":  (*editor).resume,
	"dispose": (*editor).dispose,

	"drafts":       (*editor).listDrafts,
	"resolveDraft": (*editor).resolveDraft,
}

func init() {
	methods["autosave"] = (*service).autosave
	for name, m := range autosaveMethods {
		methods[name] = func(s *service, ctx context.Context, arg *options.Reader, _ safejs.Value) (any, error) {
			s.editors.mu.Lock()
			e := s.editors.all[arg.Whole("saver")]
			s.editors.mu.Unlock()
			if e == nil || e.running() == nil {
				return nil, autosave.ErrDisposed
			}
			if limit := arg.Duration("limitMs", 0); limit != 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, limit)
				defer stop()
			}
			if saver := e.running(); saver != nil && arg.Flag("marked", false) {
				saver.MarkDirty()
			}
			return m(e, ctx, arg)
		}
	}
}

// autosave starts an AutoSave. It returns when it is known whether the page edits.
func (s *service) autosave(ctx context.Context, arg *options.Reader, _ safejs.Value) (any, error) {
	e := &editor{asker: asker{s: s, id: arg.Whole("saver")}, before: arg.Text("folder")}
	ctx, stop := context.WithTimeout(ctx, startLimit)
	defer stop()
	config := arg.AutoSave()
	config.Again = e.before != ""
	config.Locks = s.locksWithin(arg, config.Again)
	if arg.Flag("onReadonly", false) {
		config.Lock.OnReadonly = func(event lock.Event) { e.tell(encodeEvent(event), nil) }
	}
	if err := arg.Err(); err != nil {
		return nil, err
	}
	if !config.Disabled {
		if err := e.prepare(ctx, &config); err != nil {
			e.forget()
			return nil, givenUp(ctx, err)
		}
	}
	config.Snapshot, config.Listener, config.OnHandover = e.snapshot, e.publish, e.veto
	if arg.Flag("merge", false) {
		config.Merge = e.merge
	}
	s.editors.mu.Lock()
	s.editors.all[e.id] = e
	s.editors.mu.Unlock()
	if err := e.start(ctx, config); err != nil {
		e.forget()
		return nil, givenUp(ctx, err)
	}
	folder := "" // the page keeps no drafts
	if e.place != nil {
		folder = e.place.Folder()
	}
	var o jsbridge.Object
	o.Text("folder", folder)
	return o.JSON(), nil
}

const (
	startLimit = 14 * time.Second // for the checks of the storage when an AutoSave begins,
	checkLimit = 10 * time.Second // and then for the lock and the content
)

// prepare opens everything that an AutoSave needs except its lock.
func (e *editor) prepare(ctx context.Context, config *autosave.Config) (err error) {
	s := e.s
	if config.Store, err = e.store(ctx, config.Lock.Path); err == nil && e.place != nil {
		config.Drafts = e.drafts(config.Lock.Path)
		if opfs.InDatabase(e.place.Folder()) {
			config.Storage = autosave.StorageIndexedDB
		}
	}
	if err != nil {
		return err
	}
	if e.channel, err = jsbridge.NewChannel(s.settings.key() + ":edit"); err != nil {
		return err
	}
	config.Channel = jsbridge.Edits{Channel: e.channel}
	if s.document != nil {
		config.Channel, err = remote.NewChannel(s.document, config.Channel).At(config.Lock.Path)
	}
	return err
}

// start returns when the page knows whether it edits. If it fails, no lock is held.
func (e *editor) start(ctx context.Context, config autosave.Config) error {
	saver, err := autosave.New(ctx, config)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.saver = saver
	e.mu.Unlock()
	if err := saver.FlushEvents(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) { // the page has given up, and will not dispose of it
		ctx = context.WithoutCancel(ctx)
		_ = saver.Dispose(ctx)
		e.rest(ctx)
		return err
	}
	return nil
}

// givenUp returns the reason why an AutoSave could not start. The caller's own cancellation comes before its
// consequences.
func givenUp(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &lock.Error{Code: lock.CodeAborted, Operation: lock.OpAcquire, Err: err}
	}
	if ctx.Err() != nil {
		return &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire, Detail: "the lock and the store do not answer", Err: err}
	}
	return err
}

// locksWithin returns the locks of an AutoSave: within the lease that lock.within names, if any. The first acquisition
// gets the locks that the page holds already. A page that begins again may have lost that lease, in the back/forward cache or with
// the runtime before: then every acquisition fails.
func (s *service) locksWithin(arg *options.Reader, again bool) autosave.Locks {
	locks := nested{Manager: s.manager, lent: arg.Whole("lent")}
	inner := arg.Inner("lock")
	if inner == nil {
		return locks
	}
	if _, held := s.manager.Lease(inner.Text("within")); again && inner.Has("within") && !held {
		locks.lost = &lock.Error{Code: lock.CodeInvalidArgument, Operation: lock.OpAcquire, Detail: "lock.within must be a lease that is still held"}
		return locks
	}
	locks.within = s.outer(inner)
	return locks
}

// nested are the locks of a manager that are taken within a lease; the zero lease is none.
type nested struct {
	*lock.Manager
	within lock.Lease
	lost   error // of that lease
	lent   int
}

func (n nested) Acquire(ctx context.Context, opts lock.AcquireOptions) (lock.Lease, error) {
	if n.lost != nil {
		return lock.Lease{}, n.lost
	}
	return n.Manager.Acquire(jsbridge.Lent(lock.Within(ctx, n.within), n.lent), opts)
}

func (e *editor) forget() {
	e.s.editors.mu.Lock()
	delete(e.s.editors.all, e.id)
	e.s.editors.mu.Unlock()
	if e.channel != nil {
		e.channel.Close()
	}
}

// publish sends an event to the page. If the event brings a text to load, publish returns when the page has loaded it.
func (e *editor) publish(event autosave.Event) {
	o, bytes := encodeAutosave(event)
	if event.Type == autosave.EventEditable {
		_ = e.s.manager.FlushEvents(context.Background()) // the page then knows the lease
		ctx, stop := context.WithTimeout(context.Background(), askLimit)
		defer stop()
		_, _ = e.ask(ctx, o, bytes)
		return
	}
	e.tell(o, bytes)
}

// veto asks the page whether it hands over.
func (e *editor) veto(ctx context.Context, from string) error {
	lease, ok := e.running().Lease()
	if !ok {
		return nil
	}
	o := event(string(lock.EventHandoverRequested))
	o.Add("lease", encodeLease(lease))
	o.Text("from", from)
	_, err := e.ask(ctx, o, nil)
	return err
}

// running returns the saver, or nil while the AutoSave starts.
func (e *editor) running() *autosave.Saver {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.saver
}

// mark does nothing: every call already carries the mark.
func (e *editor) mark(context.Context, *options.Reader) (any, error) { return nil, nil }

// afterEvents delivers the events of an operation to the facade before its result, if its deadline leaves time for that.
func (e *editor) afterEvents(ctx context.Context, value any, err error) (any, error) {
	limit := askLimit
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer stop()
	_ = e.saver.FlushEvents(ctx)
	return value, err
}

func (e *editor) flush(ctx context.Context, _ *options.Reader) (any, error) {
	g, err := e.saver.FlushNow(ctx)
	if err != nil {
		return nil, err
	}
	return e.afterEvents(ctx, encodeGeneration(g), nil)
}

func (e *editor) edit(ctx context.Context, arg *options.Reader) (any, error) {
	opts := autosave.EditOptions{Force: arg.Flag("force", false), Grace: arg.Duration("graceMs", time.Nanosecond)}
	if arg.Err() != nil {
		return nil, arg.Err()
	}
	return e.afterEvents(ctx, nil, e.saver.RequestEdit(ctx, opts))
}

func (e *editor) suspend(ctx context.Context, _ *options.Reader) (any, error) {
	defer e.rest(ctx)
	return e.afterEvents(ctx, nil, e.saver.Suspend(ctx))
}

func (e *editor) resume(ctx context.Context, _ *options.Reader) (any, error) {
	return e.afterEvents(ctx, nil, e.saver.Resume(ctx))
}

func (e *editor) dispose(ctx context.Context, _ *options.Reader) (any, error) {
	defer e.forget()
	err := e.saver.Dispose(ctx)
	e.rest(ctx)
	return nil, err
}

// rest closes the files that are open for the next save, so that the page may remove them.
func (e *editor) rest(ctx context.Context) {
	if e.place == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, askLimit)
	defer stop()
	e.place.Rest(ctx)
}
