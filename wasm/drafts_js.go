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
	o := event("autosave:seal")
	o.Text("cause", string(cause))
	return e.ask(ctx, o, nil)
}

// Rescue implements [opfs.DraftPage].
func (e *editor) Rescue(ctx context.Context, folder string) error {
	ctx, stop := context.WithTimeout(ctx, rescueLimit)
	defer stop()
	o := event("autosave:rescue")
	o.Text("folder", folder)
	_, err := e.ask(ctx, o, nil)
	return err
}

// merge asks the page for the content that resolves a conflict.
func (e *editor) merge(ctx context.Context, sides autosave.Conflict) (autosave.Content, error) {
	o, bytes := event("autosave:merge"), parts{}
	setConflict(o, bytes, sides)
	v, err := e.ask(ctx, o, bytes)
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
	v, err := e.ask(ctx, event("autosave:snapshot"), nil)
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
	return jsbridge.List(all, encodeDraft), nil
}

func (e *editor) resolveDraft(ctx context.Context, arg *options.Reader) (any, error) {
	id, err := idIn(arg)
	if err != nil {
		return nil, err
	}
	return e.afterEvents(ctx, nil, e.saver.ResolveDraft(ctx, id, autosave.Resolution(arg.Text("as"))))
}

func encodeDraft(d autosave.Draft) jsbridge.Text {
	var o jsbridge.Object
	o.Text("id", d.ID)
	o.Add("path", jsbridge.Texts(d.Path))
	o.Text("ownerId", d.OwnerID)
	o.Optional("ownerName", d.OwnerName)
	o.Whole("at", d.At.UnixMilli())
	o.Whole("bytes", d.Bytes)
	o.Text("cause", string(d.Cause))
	o.Optional("base", d.Base)
	return o.JSON()
}

// setConflict adds the three sides of a conflict to an event.
func setConflict(o *jsbridge.Object, bytes parts, sides autosave.Conflict) {
	o.Add("draft", encodeDraft(sides.Draft))
	if sides.Base != nil {
		bytes.set("base", sides.Base)
	}
	bytes.set("mine", sides.Mine)
	bytes.set("theirs", sides.Theirs)
}
