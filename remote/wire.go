package remote

import (
	"strconv"
	"strings"
)

// The headers of the server's interface (docs/http.md). jsbridge/port.js reads those of a reply; a test compares them.
const (
	HeaderToken   = "Holdfast-Token"    // the token of the lease that a request means, or under which a content was written
	HeaderSave    = "Holdfast-Save"     // identifies a save, as <draft>/<number>
	HeaderOrder   = "Holdfast-Order"    // counts the saves under one token
	HeaderSavedAt = "Holdfast-Saved-At" // of a content
)

// The types of a [Notice].
const (
	NoticeLocked   = "document.locked"
	NoticeUnlocked = "document.unlocked"
	NoticeUpdated  = "document.updated"
	NoticeState    = "document.state" // the first one, if the server no longer has those in between
	NoticeAsked    = "document.asked"
	NoticeAskEnded = "document.ask_ended"
)

// Headers returns the headers of the request without those of its body. All values are texts.
func (r Request) Headers() map[string]any {
	h := make(map[string]any)
	if r.Token != 0 {
		h[HeaderToken] = itoa(r.Token)
	}
	if r.Save.Order != 0 {
		h[HeaderOrder] = itoa(r.Save.Order)
	}
	if r.Save.Draft != "" {
		h[HeaderSave] = r.Save.Draft + "/" + itoa(r.Save.Number)
	}
	if r.Bearer != "" {
		h["Authorization"] = "Bearer " + r.Bearer
	}
	return h
}

// ParseSave reads [HeaderSave] of a reply. Another text is no save.
func ParseSave(text string) (s Save) {
	draft, number, _ := strings.Cut(text, "/")
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		s.Draft, s.Number = draft, n
	}
	return s
}
