//go:build js && wasm

package jsbridge

import (
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/lock"
)

// Channel is the [lock.Channel] over a BroadcastChannel: it reaches the tabs and
// workers of one origin.
type Channel struct {
	value safejs.Value
	scope Scope
}

// NewChannel opens the channel of that name.
func NewChannel(name string) (*Channel, error) {
	value, err := Broadcast(name)
	if err != nil {
		return nil, err
	}
	return &Channel{value: value}, nil
}

// Broadcast returns a new BroadcastChannel, which is closed when the program has died.
func Broadcast(name string) (safejs.Value, error) {
	if port.Type() == safejs.TypeObject {
		return port.Call("channel", name)
	}
	class, err := safejs.Global().Get("BroadcastChannel")
	if err != nil {
		return class, err
	}
	return class.New(name)
}

// Close ends the channel and its listeners.
func (c *Channel) Close() {
	_, _ = c.value.Call("close")
	c.scope.Release()
}

// Post implements [lock.Channel].
func (c *Channel) Post(m lock.Message) error {
	var o Object
	o.Text("kind", string(m.Kind))
	o.Text("round", m.Round)
	if m.Kind == lock.WhoIsInTheWay {
		o.Text("initiator", m.Probe.Initiator)
		o.Moment("since", m.Probe.Since)
		o.Add("wants", List(m.Probe.Wants, encodeWant))
		o.Flag("slots", m.Probe.Slots)
	} else {
		o.Add("holders", List(m.Holders, func(h lock.Holder) Text {
			o := EncodeHolder(h)
			o.Add("wants", List(h.Wants, encodeWant))
			o.Duration("ttlMs", h.TTL)
			return o.JSON()
		}))
		o.Add("waiters", List(m.Waiters, func(w lock.Waiter) Text {
			o := EncodeWaiter(w)
			o.Add("held", List(w.Held, encodeWant))
			o.Add("awaits", List(w.Awaits, encodeWant))
			o.Flag("here", w.HoldsLocal)
			return o.JSON()
		}))
	}
	return c.post(&o)
}

func (c *Channel) post(message *Object) error {
	value, err := message.JSON().Value()
	if err == nil {
		_, err = c.value.Call("postMessage", value)
	}
	return err
}

// encodeWant writes a want as the first letter of its mode and its name.
func encodeWant(w lock.Want) Text { return quoted(string(w.Mode[:1]) + w.Name) }

func decodeWant(s string) (w lock.Want) {
	if s != "" {
		w = lock.Want{Name: s[1:], Mode: lock.Shared}
		if s[0] == 'e' {
			w.Mode = lock.Exclusive
		}
	}
	return w
}

// EncodeHolder makes a HolderInfo of the declaration file. It leaves out unknown fields.
func EncodeHolder(h lock.Holder) *Object {
	o := &Object{}
	o.Optional("resource", h.Resource)
	o.Optional("mode", string(h.Mode))
	o.Optional("strategy", string(h.Strategy))
	o.Optional("ownerId", h.OwnerID)
	o.Optional("ownerName", h.OwnerName)
	o.Optional("leaseId", h.LeaseID)
	o.Optional("within", h.Within)
	if h.Token != 0 {
		o.Whole("token", h.Token)
	}
	o.Moment("since", h.Since)
	o.Moment("expiresAt", h.ExpiresAt)
	place(o, h.Paths, h.Slots)
	if h.Slots > 1 {
		o.Whole("slot", int64(h.Slot))
	}
	return o
}

// EncodeWaiter makes a WaiterInfo of the declaration file, except for waitsFor.
func EncodeWaiter(w lock.Waiter) *Object {
	o := &Object{}
	o.Optional("resource", w.Resource)
	o.Optional("mode", string(w.Mode))
	o.Optional("ownerId", w.OwnerID)
	o.Optional("ownerName", w.OwnerName)
	o.Optional("leaseId", w.LeaseID)
	o.Optional("within", w.Within)
	o.Moment("since", w.Since)
	place(o, w.Paths, w.Slots)
	return o
}

// place adds the fields for the place of a lease.
func place(o *Object, paths [][]string, slots int) {
	if paths != nil {
		o.Add("paths", Paths(paths))
	}
	if slots > 1 {
		o.Whole("slots", int64(slots))
	}
}

// Listen implements [lock.Channel].
func (c *Channel) Listen(handle func(lock.Message)) (stop func(), err error) {
	return c.listen(func(data safejs.Value) { handle(decode(data)) })
}

func (c *Channel) listen(handle func(data safejs.Value)) (stop func(), err error) {
	var scope Scope
	listener, err := scope.Func(func(args []safejs.Value) any {
		if data, err := first(args).Get("data"); err == nil {
			handle(data)
		}
		return nil
	})
	if err == nil {
		_, err = c.value.Call("addEventListener", "message", listener)
	}
	if err != nil {
		scope.Release()
		return nil, err
	}
	return func() {
		_, _ = c.value.Call("removeEventListener", "message", listener)
		scope.Release()
	}, nil
}

// decode reads a message. Other scripts of the origin can post here too: a field that is missing or of the wrong type
// stays empty.
func decode(v safejs.Value) lock.Message {
	m := lock.Message{Kind: lock.MessageKind(Property(v, "kind")), Round: Property(v, "round"),
		Probe: lock.Probe{Initiator: Property(v, "initiator"), Since: moment(v, "since"), Wants: decodeWants(v, "wants"), Slots: flag(v, "slots")}}
	each(v, "holders", func(h safejs.Value) { m.Holders = append(m.Holders, decodeHolder(h)) })
	each(v, "waiters", func(w safejs.Value) {
		m.Waiters = append(m.Waiters, lock.Waiter{
			Resource: Property(w, "resource"), Mode: lock.Mode(Property(w, "mode")),
			OwnerID: Property(w, "ownerId"), OwnerName: Property(w, "ownerName"), LeaseID: Property(w, "leaseId"), Since: moment(w, "since"),
			Paths: decodePaths(w), Slots: int(Number(w, "slots")), Within: Property(w, "within"),
			Held: decodeWants(w, "held"), Awaits: decodeWants(w, "awaits"), HoldsLocal: flag(w, "here"),
		})
	})
	return m
}

func decodeHolder(h safejs.Value) lock.Holder {
	return lock.Holder{
		Resource: Property(h, "resource"), Mode: lock.Mode(Property(h, "mode")), Strategy: lock.Strategy(Property(h, "strategy")),
		OwnerID: Property(h, "ownerId"), OwnerName: Property(h, "ownerName"), LeaseID: Property(h, "leaseId"),
		Token: Number(h, "token"), Since: moment(h, "since"), ExpiresAt: moment(h, "expiresAt"),
		Paths: decodePaths(h), Slots: int(Number(h, "slots")), Slot: int(Number(h, "slot")), Within: Property(h, "within"),
		Wants: decodeWants(h, "wants"), TTL: time.Duration(Number(h, "ttlMs")) * time.Millisecond,
	}
}

func decodeWants(v safejs.Value, list string) (wants []lock.Want) {
	each(v, list, func(s safejs.Value) { wants = append(wants, decodeWant(text(s))) })
	return wants
}

func decodePaths(v safejs.Value) (paths [][]string) {
	each(v, "paths", func(list safejs.Value) {
		path := []string{}
		items(list, func(s safejs.Value) { path = append(path, text(s)) })
		paths = append(paths, path)
	})
	return paths
}

func each(v safejs.Value, list string, visit func(safejs.Value)) {
	if v.Type() != safejs.TypeObject {
		return
	}
	if values, err := v.Get(list); err == nil {
		items(values, visit)
	}
}

func items(values safejs.Value, visit func(safejs.Value)) {
	if values.Type() != safejs.TypeObject {
		return
	}
	n, _ := values.Length()
	for i := range n {
		if item, err := values.Index(i); err == nil {
			visit(item)
		}
	}
}

// Number returns a property that is a whole number; any other value is 0.
func Number(v safejs.Value, name string) int64 {
	if v.Type() != safejs.TypeObject {
		return 0
	}
	p, err := v.Get(name)
	if err != nil || p.Type() != safejs.TypeNumber {
		return 0
	}
	n, _ := p.Float()
	return int64(n)
}

func moment(v safejs.Value, name string) time.Time {
	ms := Number(v, name)
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
