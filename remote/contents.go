package remote

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// maxContent is the most that a server takes.
const maxContent = 8 << 20

// Contents is the [autosave.Store] of a [Document]. The server has the current content, and refuses
// one whose token is not that of its lock. Former generations are kept on this machine.
type Contents struct {
	document *Document
	history  autosave.Store
	digest   autosave.Digest

	mu     sync.Mutex
	listed listed
}

// listed is the current content that List came upon: whoever becomes the editor lists, then reads it. It is handed out
// once, so that no copy of it stays in memory.
type listed struct {
	id    string
	bytes []byte
}

// NewContents returns the store of the document. History keeps the generations that were saved here,
// for this document of this server alone; nil keeps none.
func NewContents(d *Document, history autosave.Store, digest autosave.Digest) *Contents {
	return &Contents{document: d, history: history, digest: digest}
}

// Saves reports a lock under which the server takes no content: it asks for that of the whole document.
func (d *Document) Saves(o lock.AcquireOptions) error {
	if len(o.Path) == 0 && o.Paths == nil && o.Slots < 2 && o.Mode != lock.Shared {
		return nil
	}
	return &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Resource: d.resource,
		Detail: "with a server, AutoSave saves under the lock of the whole project: leave lock.path, paths, mode and slots out"}
}

// Fence implements [autosave.Store]. On the server, the lock is the fence.
func (c *Contents) Fence(ctx context.Context, token int64) error {
	if c.history == nil {
		return nil
	}
	return c.history.Fence(ctx, token)
}

// Commit implements [autosave.Store]: what the server has is saved, whether or not it can be kept as
// history as well.
func (c *Contents) Commit(ctx context.Context, commit autosave.Commit) (autosave.Generation, error) {
	commit, err := commit.Taken(ctx)
	if err != nil {
		return autosave.Generation{}, err
	}
	bytes, err := commit.Content.Bytes()
	if err != nil {
		return autosave.Generation{}, err
	}
	commit.Content = autosave.Bytes(bytes) // for the history as well
	if commit.Sized != nil {
		commit.Sized(int64(len(bytes)))
	}
	if len(bytes) > maxContent {
		return autosave.Generation{}, &autosave.Error{Code: autosave.CodeQuota, Operation: autosave.OpSave,
			Detail: "the server takes 8 MiB at most; save less"}
	}
	tell := commit.Progress
	if tell == nil {
		tell = func(autosave.Phase) {}
	}
	tell(autosave.PhaseWriting)
	reply, err := c.document.sendFor(ctx, commitLimit, Request{Method: "PUT", Path: c.document.path + "/content",
		Token: commit.Token, Body: bytes})
	if err != nil || reply.Status != statusOK {
		return autosave.Generation{}, unsaved(reply, err)
	}
	if c.history != nil {
		commit.SavedAt = reply.SavedAt
		commit.Progress = func(p autosave.Phase) {
			if p != autosave.PhaseWriting {
				tell(p)
			}
		}
		if g, err := c.history.Commit(ctx, commit); err == nil {
			return g, nil
		}
	}
	return c.generation(ctx, content{bytes, reply.SavedAt, commit.Token})
}

// commitLimit is how long 8 MiB may take on a slow network.
const commitLimit = 25 * time.Second

// unsaved says why the server did not save.
func unsaved(r Reply, err error) error {
	e := &autosave.Error{Code: autosave.CodeWriteFailed, Operation: autosave.OpSave, Err: err}
	switch {
	case passing(r, err):
		e.Detail, e.Err = "the server could not be told; it is tried again", unanswered(r, err)
	case r.Status == statusForbidden, r.Status == statusConflict:
		e.Code, e.Detail = autosave.CodeStaleToken, "the lock under which it was written has ended: "+r.Message
	case r.Status == statusTooLarge:
		e.Code, e.Detail = autosave.CodeQuota, "it is larger than the server takes"
	default:
		e.Detail, e.Err = "", refused(autosave.OpSave, r)
	}
	return e
}

// content is what the server has.
type content struct {
	bytes   []byte
	savedAt time.Time
	token   int64
}

// current asks the server what it has; ok is false where it has nothing.
func (c *Contents) current(ctx context.Context) (now content, ok bool, err error) {
	reply, err := c.document.sendFor(ctx, commitLimit, Request{Method: "GET", Path: c.document.path + "/content"})
	switch {
	case passing(reply, err):
		return now, false, &autosave.Error{Code: autosave.CodeReadFailed, Operation: autosave.OpRead,
			Detail: "the server does not answer; try again when the network is there", Err: unanswered(reply, err)}
	case reply.Status == statusNotFound:
		return now, false, nil
	case reply.Status != statusOK:
		return now, false, &autosave.Error{Code: autosave.CodeReadFailed, Operation: autosave.OpRead, Err: refused(autosave.OpRead, reply)}
	}
	return content{reply.Body, reply.SavedAt, reply.Token}, true, nil
}

// generation describes what the server has.
func (c *Contents) generation(ctx context.Context, now content) (autosave.Generation, error) {
	sum, err := c.digest(ctx, now.bytes)
	return autosave.Generation{
		ID:      strconv.FormatInt(now.savedAt.UnixMilli(), 10) + "-" + strconv.FormatInt(now.token, 10),
		SavedAt: now.savedAt, Bytes: int64(len(now.bytes)), Token: now.token, SHA256: sum, Current: true,
	}, err
}

// List implements [autosave.Store]. What somebody else saved is listed as the current generation
// alone.
func (c *Contents) List(ctx context.Context) ([]autosave.Generation, error) {
	now, ok, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	var all []autosave.Generation
	if c.history != nil {
		if all, err = c.history.List(ctx); err != nil {
			return nil, err
		}
	}
	for i := range all {
		all[i].Current = false
	}
	if !ok {
		return all, nil
	}
	g, err := c.generation(ctx, now)
	if err != nil {
		return nil, err
	}
	saved := slices.IndexFunc(all, func(own autosave.Generation) bool { return own.Token == g.Token && own.SHA256 == g.SHA256 })
	if saved >= 0 { // by this machine, which knows it under its own id
		g = all[saved]
		g.Current = true
		all = slices.Delete(all, saved, saved+1)
	}
	c.mu.Lock()
	c.listed = listed{g.ID, now.bytes}
	c.mu.Unlock()
	return slices.Insert(all, 0, g), nil
}

// takeListed returns what List came upon, if it is the generation of this id and nobody else has taken it.
func (c *Contents) takeListed(id string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listed.id != id {
		return nil, false
	}
	bytes := c.listed.bytes
	c.listed = listed{}
	return bytes, true
}

// Read implements [autosave.Store].
func (c *Contents) Read(ctx context.Context, id string) ([]byte, error) {
	if bytes, ok := c.takeListed(id); ok {
		return bytes, nil
	}
	if id != autosave.Current && c.history != nil {
		bytes, err := c.history.Read(ctx, id)
		if !errors.Is(err, autosave.ErrNotFound) {
			return bytes, err
		}
	}
	now, ok, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	if ok && id != autosave.Current {
		g, err := c.generation(ctx, now)
		if err != nil {
			return nil, err
		}
		ok = g.ID == id
	}
	if !ok {
		return nil, &lock.Error{Code: autosave.CodeNotFound, Operation: autosave.OpRead, Resource: id, Detail: "the server has no such content, nor has this machine"}
	}
	return now.bytes, nil
}
