//go:build js && wasm

package main

import (
	"context"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/wasm/options"
)

// sealLimit bounds how long the page may take to store its unsaved text. rescueLimit bounds how long one question waits
// until the page has stored what other pages left in localStorage: less than autosave waits for a list of drafts.
const sealLimit, rescueLimit = 5 * time.Second, 4 * time.Second

// drafts returns the drafts of the document, and lets the page write there.
func (e *editor) drafts(path []string) autosave.Drafts {
	d := e.place.Drafts(path, e.s.settings.journals, e)
	d.Bind(e.id, e.s.settings.ownerID, e.s.settings.ownerName)
	return d
}

// Seal implements [opfs.DraftPage].
func (e *editor) Seal(ctx context.Context, cause autosave.Cause) (safejs.Value, error) {
	ctx, stop := context.WithTimeout(ctx, sealLimit)
	defer stop()
	return e.ask(ctx, map[string]any{"type": "autosave:seal", "cause": string(cause)})
}

// Rescue implements [opfs.DraftPage].
func (e *editor) Rescue(ctx context.Context, folder string) error {
	ctx, stop := context.WithTimeout(ctx, rescueLimit)
	defer stop()
	_, err := e.ask(ctx, map[string]any{"type": "autosave:rescue", "folder": folder})
	return err
}

// merge asks the page for the content that resolves a conflict.
func (e *editor) merge(ctx context.Context, sides autosave.Conflict) (autosave.Content, error) {
	event := map[string]any{"type": "autosave:merge"}
	setConflict(event, sides)
	v, err := e.ask(ctx, event)
	if err != nil {
		return nil, err
	}
	if merged, err := v.Get("bytes"); err != nil || merged.Type() != safejs.TypeObject {
		return nil, err
	}
	return jsbridge.Content{Object: v}, nil
}

// snapshot asks the page for the content to save.
func (e *editor) snapshot(ctx context.Context) (autosave.Content, error) {
	v, err := e.ask(ctx, map[string]any{"type": "autosave:snapshot"})
	if err != nil {
		return nil, err
	}
	content := jsbridge.Content{Object: v}
	context.AfterFunc(ctx, content.Drop)
	return autosave.Numbered{Content: content, Draft: jsbridge.Property(v, "draft"), Number: jsbridge.Number(v, "number")}, nil
}

// listDrafts lists the drafts for the page.
func (e *editor) listDrafts(ctx context.Context, _ *options.Reader) (any, error) {
	all, err := e.saver.Drafts(ctx)
	if err != nil {
		return nil, err
	}
	return jsbridge.JSON(encodeDrafts(all)), nil
}

func (e *editor) resolveDraft(ctx context.Context, arg *options.Reader) (any, error) {
	id, err := idIn(arg)
	if err != nil {
		return nil, err
	}
	return e.done(ctx, nil, e.saver.ResolveDraft(ctx, id, autosave.Resolution(arg.Text("as"))))
}

func encodeDrafts(drafts []autosave.Draft) []any {
	values := make([]any, len(drafts))
	for i, d := range drafts {
		values[i] = encodeDraft(d)
	}
	return values
}

func encodeDraft(d autosave.Draft) map[string]any {
	path := make([]any, len(d.Path))
	for i, part := range d.Path {
		path[i] = part
	}
	m := map[string]any{"id": d.ID, "path": path, "ownerId": d.OwnerID, "at": d.At.UnixMilli(), "bytes": d.Bytes, "cause": string(d.Cause)}
	if d.OwnerName != "" {
		m["ownerName"] = d.OwnerName
	}
	if d.Base != "" {
		m["base"] = d.Base
	}
	return m
}

// setConflict adds the three sides of a conflict to an event.
func setConflict(event map[string]any, sides autosave.Conflict) {
	event["draft"] = encodeDraft(sides.Draft)
	if sides.Base != nil {
		setBytes(event, "base", sides.Base)
	}
	setBytes(event, "mine", sides.Mine)
	setBytes(event, "theirs", sides.Theirs)
}
