package remote_test

import (
	"bytes"
	"net/url"
	"time"

	"github.com/holdfast-dev/holdfast/remote"
)

// stored is the content of a document.
type stored struct {
	content []byte
	written int64 // token of the content; 0 for none
	saved   time.Time
	save    remote.Save
}

// storedAt returns the content of a document: of the project, or of one below it.
func (n *internet) storedAt(id string) *stored {
	if id == document[1] {
		return &n.stored
	}
	if n.below[id] == nil {
		n.below[id] = new(stored)
	}
	return n.below[id]
}

// access reads or writes the content.
func (b *browser) access(r remote.Request, target *url.URL) remote.Reply {
	n := b.net
	holder, now := n.on(b.wholeRequest(target)), n.storedAt(documentIn(target))
	sameToken := now.written != 0 && now.written == r.Token
	ordered := sameToken && r.Save.Order != 0
	sameDraft := sameToken && r.Save.Draft != "" && r.Save.Draft == now.save.Draft
	stale := remote.Reply{Status: 409, Error: "stale_save", Message: "A later save is stored."}
	switch {
	case r.Method == "GET" && n.refuseReading.Status != 0:
		return n.refuseReading
	case r.Method == "PUT" && n.refuseSaving.Status != 0:
		return n.refuseSaving
	case r.Method == "GET" && now.written == 0:
		return remote.Reply{Status: 404, Error: "document_not_found"}
	case r.Method == "GET":
		save := now.save
		save.Order = 0
		return remote.Reply{Status: 200, Body: now.content, Token: now.written, SavedAt: now.saved, Save: save}
	case holder == nil || holder.session != b.owner():
		return remote.Reply{Status: 403, Error: "not_locked_by_user", Message: "It is not yours."}
	case r.Token != holder.token:
		return remote.Reply{Status: 409, Error: "stale_token", Message: "That lock has ended."}
	case ordered && r.Save.Order < now.save.Order, sameDraft && r.Save.Number < now.save.Number:
		return stale
	case ordered && r.Save.Order == now.save.Order, sameDraft && r.Save.Number == now.save.Number:
		if !bytes.Equal(now.content, r.Body) {
			return stale
		}
		now.save.Order = r.Save.Order
		return remote.Reply{Status: 200, SavedAt: now.saved}
	}
	*now = stored{bytes.Clone(r.Body), holder.token, time.Now().Truncate(time.Millisecond), r.Save}
	return remote.Reply{Status: 200, SavedAt: now.saved}
}
