//go:build js && wasm

package jsbridge

import (
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Edits is the [autosave.Channel] over a BroadcastChannel.
type Edits struct{ *Channel }

// Post implements [autosave.Channel].
func (e Edits) Post(m autosave.Message) error {
	var o Object
	o.Optional("kind", string(m.Kind))
	o.Optional("round", m.Round)
	o.Optional("from", m.From)
	o.Optional("document", m.Document)
	o.Optional("detail", m.Detail)
	o.Whole("question", int64(m.Question))
	o.Whole("grace", m.Grace.Milliseconds())
	o.Flag("force", m.Force)
	if m.Kind == autosave.Edits {
		o.Add("holder", EncodeHolder(m.Holder).JSON())
	}
	return e.post(&o)
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
		m.Question, m.Force = int(Number(data, "question")), flag(data, "force")
		m.Grace = time.Duration(Number(data, "grace")) * time.Millisecond
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
