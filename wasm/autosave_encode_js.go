//go:build js && wasm

package main

import (
	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// The values below go to the facade of AutoSave. Their fields are those of the declaration file, except for errors and
// the lease, which the facade makes itself.

func encodeAutosave(e autosave.Event) map[string]any {
	m := map[string]any{"type": string(e.Type), "state": encodeSaverState(e.State)}
	switch e.Type {
	case autosave.EventSaved:
		m["generation"] = encodeGeneration(*e.Generation)
		if e.Generation.Draft != "" {
			m["draft"], m["number"] = e.Generation.Draft, e.Generation.Number
		}
	case autosave.EventReadonly:
		m["reason"] = string(e.Reason)
		if e.Holder != nil {
			m["holder"] = jsbridge.EncodeHolder(*e.Holder)
		}
	case autosave.EventPreview:
		setBytes(m, "content", e.Content)
	case autosave.EventEditable:
		m["leaseId"], m["base"], m["drafts"] = e.LeaseID, e.Base, encodeDrafts(e.Drafts)
		if e.Loaded {
			setBytes(m, "content", e.Content)
		}
	case autosave.EventDraft:
		m["draft"] = encodeDraft(*e.Draft)
	case autosave.EventConflict:
		setConflict(m, *e.Conflict)
	}
	if e.Err != nil {
		m["error"] = reason(e.Err)
	}
	if e.Unsaved != nil {
		setBytes(m, "unsaved", e.Unsaved)
	}
	return m
}

func setBytes(m map[string]any, name string, bytes []byte) {
	if array, err := jsbridge.Uint8Array(bytes); err == nil {
		m[name] = array
	}
}

func encodeSaverState(s autosave.State) map[string]any {
	m := map[string]any{"phase": string(s.Phase), "readOnly": s.ReadOnly, "pendingBytes": s.PendingBytes, "retryCount": s.RetryCount,
		"storage": string(s.Storage), "drafts": s.Drafts}
	if s.Storage == autosave.StorageServer {
		m["online"] = s.Online
	}
	if !s.LastSuccess.IsZero() {
		m["lastSuccessAt"] = s.LastSuccess.UnixMilli()
	}
	if s.LastErr != nil {
		m["lastError"] = reason(s.LastErr)
	}
	if s.QueuedGeneration != 0 {
		m["queuedGeneration"] = s.QueuedGeneration
	}
	if s.Holder != nil {
		m["holder"] = jsbridge.EncodeHolder(*s.Holder)
	}
	return m
}

func encodeGeneration(g autosave.Generation) map[string]any {
	m := map[string]any{"id": g.ID, "savedAt": g.SavedAt.UnixMilli(), "bytes": g.Bytes, "token": g.Token,
		"sha256": g.SHA256, "current": g.Current}
	if g.Name != "" {
		m["name"] = g.Name
	}
	if g.OwnerName != "" {
		m["ownerName"] = g.OwnerName
	}
	return m
}
