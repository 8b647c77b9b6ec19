package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/internal/document"
	"github.com/holdfast-dev/holdfast/lock"
)

// maxContent is the largest content that a server accepts.
const maxContent = 8 << 20

var _ autosave.RemoteStore = (*Contents)(nil)

// Contents is the [autosave.Store] of a [Document]. The server has the current content. It refuses a content whose
// token is not the token of the lock. It also refuses a content that arrives after a later save. This machine keeps
// former generations. If it cannot keep them, the page still edits and saves.
type Contents struct {
	document *Document
	path     string // of the content
	history  history
	digest   autosave.Digest

	mu     sync.Mutex
	loads  int64 // the token of a Fence after which no List has run
	listed listed
	sent   int64 // saves
}

// listed is the current content that List found: a new editor lists it and then reads it. It is handed out once, so
// that no copy stays in memory.
type listed struct {
	id    string
	bytes []byte
}

// NewContents returns the store of the project's document. kept stores the generations that this machine has saved for
// this document of this server; nil stores none.
func NewContents(d *Document, kept autosave.Store, digest autosave.Digest) *Contents {
	return &Contents{document: d, path: d.path + "/content", history: newHistory(kept), digest: digest}
}

// At makes the store serve the document at a path below the project. It fails for a path that cannot be part of a
// document's id.
func (c *Contents) At(path []string) (*Contents, error) {
	id, err := c.document.ID(path)
	c.path = documentPath(id) + "/content"
	return c, err
}

// Fence implements [autosave.Store]. On the server, the lock is the fence.
func (c *Contents) Fence(ctx context.Context, token int64) error {
	c.history.fence(ctx, token)
	c.mu.Lock()
	c.loads = token
	c.mu.Unlock()
	return context.Cause(ctx)
}

// Commit implements [autosave.Store]: a content that the server has is saved, even if the history cannot keep it.
func (c *Contents) Commit(ctx context.Context, commit autosave.Commit) (autosave.Generation, error) {
	commit, err := commit.Taken(ctx)
	if err != nil {
		return autosave.Generation{}, err
	}
	bytes, err := commit.Content.Bytes()
	if err != nil {
		return autosave.Generation{}, err
	}
	commit.Content = autosave.Bytes(bytes) // for the history too
	if commit.Sized != nil {
		commit.Sized(int64(len(bytes)))
	}
	if len(bytes) > maxContent {
		return autosave.Generation{}, &autosave.Error{Code: autosave.CodeQuota, Operation: autosave.OpSave,
			Detail: "the server takes 8 MiB at most; save less"}
	}
	if commit.Progress != nil {
		commit.Progress(autosave.PhaseWriting)
	}
	if commit.Aside {
		return c.aside(ctx, commit)
	}
	save := c.next(commit)
	reply, err := c.document.sendFor(ctx, commitLimit, Request{Method: "PUT", Path: c.path,
		Token: commit.Token, Save: save, Body: bytes})
	if err != nil || reply.Status != statusOK {
		return autosave.Generation{}, unsaved(reply, err)
	}
	if !reply.SavedAt.IsZero() {
		commit.SavedAt = reply.SavedAt
	}
	if g, err := c.history.commit(ctx, commit); err == nil {
		return g, nil
	}
	return c.generation(ctx, content{bytes, commit.SavedAt, commit.Token, save})
}

// aside keeps a generation that does not become current: the server has no place for it.
func (c *Contents) aside(ctx context.Context, commit autosave.Commit) (autosave.Generation, error) {
	g, err := c.history.commit(ctx, commit)
	g.Current = false
	return g, err
}

// next returns the save of a commit. Each save has a higher order than the earlier ones, so that the server refuses an
// abandoned save that arrives late.
func (c *Contents) next(commit autosave.Commit) Save {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	if !isDraft(commit.Draft) {
		return Save{Order: c.sent}
	}
	return Save{Draft: commit.Draft, Number: commit.Number, Order: c.sent}
}

// isDraft reports whether the server accepts the name of a draft.
func isDraft(name string) bool {
	for i := range len(name) {
		if !document.IsPlain(name[i]) || name[i] == '.' {
			return false
		}
	}
	return len(name) <= 64 && name != ""
}

// commitLimit is how long 8 MiB may take on a slow network.
const commitLimit = 25 * time.Second

// unsaved explains why the server did not save.
func unsaved(r Reply, err error) error {
	e := &autosave.Error{Code: autosave.CodeWriteFailed, Operation: autosave.OpSave, Err: err}
	switch {
	case r.Status == statusFull:
		e.Code, e.Detail = autosave.CodeQuota, "the server has no space; the saved content stays"
	case passing(r, err):
		e.Detail, e.Err = "the server has not confirmed the save", unanswered(r, err)
	case r.Error == "stale_save":
		e.Detail = "this page has saved a later text already; what it has now is saved next"
	case notAllowed(r):
		return refused(autosave.OpSave, r)
	case r.Status == statusForbidden, r.Status == statusConflict:
		e.Code, e.Detail = autosave.CodeStaleToken, "the lock under which it was written has ended: "+r.Message
	case r.Status == statusTooLarge:
		e.Code, e.Detail = autosave.CodeQuota, "it is larger than the server takes"
	default:
		e.Detail, e.Err = "", refused(autosave.OpSave, r)
	}
	return e
}

// content is the content on the server.
type content struct {
	bytes   []byte
	savedAt time.Time
	token   int64
	save    Save
}

// current asks the server for its content; ok is false if there is none.
func (c *Contents) current(ctx context.Context) (now content, ok bool, err error) {
	reply, err := c.document.sendFor(ctx, commitLimit, Request{Method: "GET", Path: c.path})
	switch {
	case passing(reply, err):
		e := &autosave.Error{Code: autosave.CodeReadFailed, Operation: autosave.OpRead, Err: unanswered(reply, err)}
		if e.Detail = "the server does not answer; try again when the network is there"; unsent(err) {
			e.Detail = "the server could not be asked"
		}
		return now, false, e
	case reply.Status == statusNotFound:
		return now, false, nil
	case notAllowed(reply):
		return now, false, refused(autosave.OpRead, reply)
	case reply.Status != statusOK:
		return now, false, &autosave.Error{Code: autosave.CodeReadFailed, Operation: autosave.OpRead, Err: refused(autosave.OpRead, reply)}
	}
	return content{reply.Body, reply.SavedAt, reply.Token, reply.Save}, true, nil
}

// generation describes the server's content.
func (c *Contents) generation(ctx context.Context, now content) (autosave.Generation, error) {
	sum, err := c.digest(ctx, now.bytes)
	return autosave.Generation{
		ID:      autosave.SavedID(now.savedAt, now.token),
		SavedAt: now.savedAt, Bytes: int64(len(now.bytes)), Token: now.token, SHA256: sum, Current: true,
		Draft: now.save.Draft, Number: now.save.Number,
	}, err
}

// known describes the server's content under the id that this machine has for it, if both have the same bytes, and
// returns the former generations too. If the newest generation here is another one, an editor that has just begun keeps
// a copy of the content. The copy is shown while the server does not answer, and it is the base of what the user types.
// token is the token of that editor, or 0.
func (c *Contents) known(ctx context.Context, now content, token int64) (autosave.Generation, []autosave.Generation, error) {
	g, err := c.generation(ctx, now)
	former := c.history.list(ctx)
	if err != nil {
		return g, former, err
	}
	i := slices.IndexFunc(former, func(own autosave.Generation) bool { return own.SHA256 == g.SHA256 })
	if i != 0 { // the newest generation here is another one
		if copied, err := c.history.keep(ctx, token, g, now.bytes); err == nil {
			g.ID = copied.ID
			return g, former, nil
		}
	}
	if i >= 0 {
		g.ID, g.Name, g.OwnerName = former[i].ID, former[i].Name, former[i].OwnerName
		former = append(former[:i], former[i+1:]...)
	}
	return g, former, nil
}

// List implements [autosave.Store]. It lists the content of another page as the current generation alone. If the server
// has no content, no generation is current.
func (c *Contents) List(ctx context.Context) ([]autosave.Generation, error) {
	now, ok, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	token := c.loads
	c.loads = 0 // also if the server has nothing: whatever it has later, this editor saves and keeps itself
	c.mu.Unlock()
	if !ok {
		return c.history.list(ctx), nil
	}
	g, former, err := c.known(ctx, now, token)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.listed = listed{g.ID, now.bytes}
	c.mu.Unlock()
	return append([]autosave.Generation{g}, former...), nil
}

// Online implements [autosave.RemoteStore].
func (c *Contents) Online() bool { return c.document.server.online() }

// Watch implements [autosave.RemoteStore].
func (c *Contents) Watch(changed func()) (stop func()) { return c.document.server.watch(changed) }

// Preview implements [autosave.RemoteStore].
func (c *Contents) Preview(ctx context.Context) (autosave.Generation, []byte, error) {
	for _, g := range c.history.list(ctx) {
		if bytes, err := c.history.read(ctx, g.ID); err == nil {
			return g, bytes, nil
		}
	}
	return autosave.Generation{}, nil, autosave.ErrNotFound
}

// Pin implements [autosave.Store] for the generations that this machine keeps. Other machines and the server do not
// know its pins.
func (c *Contents) Pin(ctx context.Context, token int64, id, name string) (autosave.Generation, error) {
	all, err := c.List(ctx)
	if err != nil {
		return autosave.Generation{}, err
	}
	i := slices.IndexFunc(all, func(g autosave.Generation) bool {
		return g.ID == id || g.Current && (id == autosave.Current || id == autosave.SavedID(g.SavedAt, g.Token))
	})
	if i < 0 {
		return autosave.Generation{}, &lock.Error{Code: autosave.CodeNotFound, Operation: autosave.OpRead, Resource: id, Detail: "this machine does not keep it"}
	}
	g, err := c.history.pin(ctx, token, all[i].ID, name)
	g.Token, g.Current = all[i].Token, all[i].Current
	return g, err
}

// takeListed returns the content that List found, if it is the generation of this id and no other reader has taken it. Otherwise it
// returns nil.
func (c *Contents) takeListed(id string) (bytes []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listed.id == id {
		bytes, c.listed = c.listed.bytes, listed{}
	}
	return bytes
}

// Read implements [autosave.Store]. A generation that cannot be read here is read from the server, if the server has
// the same one.
func (c *Contents) Read(ctx context.Context, id string) ([]byte, error) {
	if bytes := c.takeListed(id); bytes != nil {
		return bytes, nil
	}
	var here error = autosave.ErrNotFound
	if id != autosave.Current {
		var bytes []byte
		if bytes, here = c.history.read(ctx, id); here == nil {
			return bytes, nil
		}
	}
	now, ok, err := c.current(ctx)
	if ok && id != autosave.Current && id != autosave.SavedID(now.savedAt, now.token) {
		var g autosave.Generation
		g, _, err = c.known(ctx, now, 0)
		ok = g.ID == id
	}
	switch {
	case !errors.Is(here, autosave.ErrNotFound) && (err != nil || !ok):
		return nil, here
	case err != nil:
		return nil, err
	case !ok:
		return nil, &lock.Error{Code: autosave.CodeNotFound, Operation: autosave.OpRead, Resource: id, Detail: "neither the server nor this machine has such a content"}
	}
	return now.bytes, nil
}
