//go:build js && wasm

package jsbridge

import (
	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Edits is the [autosave.Channel] over a BroadcastChannel.
type Edits struct{ *Channel }

// Post implements [autosave.Channel].
func (e Edits) Post(m autosave.Message) error {
	message := known(map[string]any{
		"kind": string(m.Kind), "round": m.Round, "from": m.From, "document": m.Document, "force": m.Force, "detail": m.Detail,
	})
	if m.Kind == autosave.Edits {
		message["holder"] = EncodeHolder(m.Holder)
	}
	return e.post(message)
}

// Listen implements [autosave.Channel]. Other scripts of the origin can post here too: a field that is missing or of
// the wrong type stays empty, and an empty kind has no handler.
func (e Edits) Listen(handle func(autosave.Message)) (stop func(), err error) {
	return e.listen(func(data safejs.Value) {
		m := autosave.Message{Kind: autosave.MessageKind(Property(data, "kind")), Round: Property(data, "round"),
			From: Property(data, "from"), Document: Property(data, "document"), Detail: Property(data, "detail")}
		if m.Kind == "" {
			return
		}
		m.Force = flag(data, "force")
		if holder, err := data.Get("holder"); err == nil {
			m.Holder = decodeHolder(holder)
		}
		handle(m)
	})
}

func flag(v safejs.Value, name string) bool {
	p, err := v.Get(name)
	if err != nil || p.Type() != safejs.TypeBoolean {
		return false
	}
	yes, _ := p.Truthy()
	return yes
}
