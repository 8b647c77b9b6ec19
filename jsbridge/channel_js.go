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
	message := map[string]any{"kind": string(m.Kind), "round": m.Round}
	if m.Kind == lock.WhoIsInTheWay {
		message["initiator"], message["since"] = m.Probe.Initiator, millis(m.Probe.Since)
		message["wants"], message["slots"] = all(m.Probe.Wants, encodeWant), m.Probe.Slots
	} else {
		message["holders"] = all(m.Holders, func(h lock.Holder) any {
			v := EncodeHolder(h)
			v["wants"] = all(h.Wants, encodeWant)
			return v
		})
		message["waiters"] = all(m.Waiters, func(w lock.Waiter) any {
			v := EncodeWaiter(w)
			v["held"], v["awaits"], v["here"] = all(w.Held, encodeWant), all(w.Awaits, encodeWant), w.HoldsLocal
			return v
		})
	}
	return c.post(message)
}

func (c *Channel) post(message map[string]any) error {
	_, err := c.value.Call("postMessage", message)
	return err
}

// encodeWant writes a want as the first letter of its mode and its name.
func encodeWant(w lock.Want) any { return string(w.Mode[:1]) + w.Name }

func decodeWant(s string) (w lock.Want) {
	if s != "" {
		w = lock.Want{Name: s[1:], Mode: lock.Shared}
		if s[0] == 'e' {
			w.Mode = lock.Exclusive
		}
	}
	return w
}

// EncodePaths makes an array of arrays of text.
func EncodePaths(paths [][]string) []any {
	return all(paths, func(path []string) any { return all(path, func(s string) any { return s }) })
}

// EncodeHolder makes a HolderInfo of the declaration file.
func EncodeHolder(h lock.Holder) map[string]any {
	m := known(map[string]any{
		"resource": h.Resource, "mode": string(h.Mode), "strategy": string(h.Strategy),
		"ownerId": h.OwnerID, "ownerName": h.OwnerName, "leaseId": h.LeaseID, "token": h.Token,
		"since": millis(h.Since), "expiresAt": millis(h.ExpiresAt), "within": h.Within,
	})
	place(m, h.Paths, h.Slots)
	if h.Slots > 1 {
		m["slot"] = h.Slot
	}
	return m
}

// EncodeWaiter makes a WaiterInfo of the declaration file, except for waitsFor.
func EncodeWaiter(w lock.Waiter) map[string]any {
	m := known(map[string]any{
		"resource": w.Resource, "mode": string(w.Mode), "ownerId": w.OwnerID, "ownerName": w.OwnerName, "leaseId": w.LeaseID,
		"since": millis(w.Since), "within": w.Within,
	})
	place(m, w.Paths, w.Slots)
	return m
}

// place adds the fields for the place of a lease.
func place(m map[string]any, paths [][]string, slots int) {
	if paths != nil {
		m["paths"] = EncodePaths(paths)
	}
	if slots > 1 {
		m["slots"] = slots
	}
}

// known removes the fields whose value is unknown.
func known(m map[string]any) map[string]any {
	for name, v := range m {
		if v == "" || v == int64(0) {
			delete(m, name)
		}
	}
	return m
}

func all[T any](items []T, encode func(T) any) []any {
	values := make([]any, len(items))
	for i, item := range items {
		values[i] = encode(item)
	}
	return values
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
		Wants: decodeWants(h, "wants"),
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

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(v safejs.Value, name string) time.Time {
	ms := Number(v, name)
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
