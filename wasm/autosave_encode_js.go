//go:build js && wasm

package main

import (
	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// The values below go to the facade of AutoSave. Their fields are those of the declaration file, except for errors and
// the lease, which the facade makes itself.

func encodeAutosave(e autosave.Event) (*jsbridge.Object, parts) {
	o, bytes := event(string(e.Type)), parts{}
	o.Add("state", encodeSaverState(e.State))
	if g := e.Generation; g != nil {
		o.Optional("draft", g.Draft)
		o.Whole("number", g.Number)
	}
	switch e.Type {
	case autosave.EventSaved:
		o.Add("generation", encodeGeneration(*e.Generation))
	case autosave.EventReadonly:
		o.Text("reason", string(e.Reason))
		if e.Holder != nil {
			o.Add("holder", jsbridge.EncodeHolder(*e.Holder).JSON())
		}
	case autosave.EventPreview:
		bytes.set("content", e.Content)
	case autosave.EventEditable:
		o.Text("leaseId", e.LeaseID)
		o.Text("base", e.Base)
		o.Add("drafts", jsbridge.List(e.Drafts, encodeDraft))
		if e.Loaded {
			bytes.set("content", e.Content)
		}
	case autosave.EventDraft:
		o.Add("draft", encodeDraft(*e.Draft))
	case autosave.EventConflict:
		setConflict(o, bytes, *e.Conflict)
	}
	if e.Err != nil {
		o.Add("error", reason(e.Err))
	}
	if e.Unsaved != nil {
		bytes.set("unsaved", e.Unsaved)
	}
	return o, bytes
}

// parts are the fields of an event that are bytes, which cross unchanged beside its text.
type parts map[string]any

func (p parts) set(name string, bytes []byte) {
	if array, err := jsbridge.Uint8Array(bytes); err == nil {
		p[name] = array
	}
}

func encodeSaverState(s autosave.State) jsbridge.Text {
	var o jsbridge.Object
	o.Text("phase", string(s.Phase))
	o.Flag("readOnly", s.ReadOnly)
	o.Whole("pendingBytes", s.PendingBytes)
	o.Whole("retryCount", int64(s.RetryCount))
	o.Text("storage", string(s.Storage))
	o.Whole("drafts", int64(s.Drafts))
	if s.Storage == autosave.StorageServer {
		o.Flag("online", s.Online)
	}
	o.Moment("lastSuccessAt", s.LastSuccess)
	if s.LastErr != nil {
		o.Add("lastError", reason(s.LastErr))
	}
	if s.QueuedGeneration != 0 {
		o.Whole("queuedGeneration", s.QueuedGeneration)
	}
	if s.Holder != nil {
		o.Add("holder", jsbridge.EncodeHolder(*s.Holder).JSON())
	}
	return o.JSON()
}

func encodeGeneration(g autosave.Generation) jsbridge.Text {
	var o jsbridge.Object
	o.Text("id", g.ID)
	o.Whole("savedAt", g.SavedAt.UnixMilli())
	o.Whole("bytes", g.Bytes)
	o.Whole("token", g.Token)
	o.Text("sha256", g.SHA256)
	o.Flag("current", g.Current)
	o.Optional("name", g.Name)
	o.Optional("ownerName", g.OwnerName)
	return o.JSON()
}
