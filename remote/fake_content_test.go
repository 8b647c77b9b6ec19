package remote_test

import (
	"bytes"
	"time"

	"github.com/holdfast-dev/holdfast/remote"
)

// access reads or writes the content.
func (b *browser) access(r remote.Request) remote.Reply {
	n := b.net
	holder := n.now()
	sameToken := n.written != 0 && n.written == r.Token
	ordered := sameToken && r.Save.Order != 0
	sameDraft := sameToken && r.Save.Draft != "" && r.Save.Draft == n.save.Draft
	stale := remote.Reply{Status: 409, Error: "stale_save", Message: "A later save is stored."}
	switch {
	case r.Method == "GET" && n.refuseReading.Status != 0:
		return n.refuseReading
	case r.Method == "PUT" && n.refuseSaving.Status != 0:
		return n.refuseSaving
	case r.Method == "GET" && n.written == 0:
		return remote.Reply{Status: 404, Error: "document_not_found"}
	case r.Method == "GET":
		save := n.save
		save.Order = 0
		return remote.Reply{Status: 200, Body: n.content, Token: n.written, SavedAt: n.saved, Save: save}
	case holder == nil || holder.session != b.owner():
		return remote.Reply{Status: 403, Error: "not_locked_by_user", Message: "It is not yours."}
	case r.Token != holder.token:
		return remote.Reply{Status: 409, Error: "stale_token", Message: "That lock has ended."}
	case ordered && r.Save.Order < n.save.Order, sameDraft && r.Save.Number < n.save.Number:
		return stale
	case ordered && r.Save.Order == n.save.Order, sameDraft && r.Save.Number == n.save.Number:
		if !bytes.Equal(n.content, r.Body) {
			return stale
		}
		n.save.Order = r.Save.Order
		return remote.Reply{Status: 200, SavedAt: n.saved}
	}
	n.content, n.written, n.saved, n.save = bytes.Clone(r.Body), holder.token, time.Now().Truncate(time.Millisecond), r.Save
	return remote.Reply{Status: 200, SavedAt: n.saved}
}
