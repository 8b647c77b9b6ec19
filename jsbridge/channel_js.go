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
	class, err := safejs.Global().Get("BroadcastChannel")
	if err != nil {
		return nil, err
	}
	value, err := class.New(name)
	if err != nil {
		return nil, err
	}
	return &Channel{value: value}, nil
}

// Close ends the channel and its listeners.
func (c *Channel) Close() {
	_, _ = c.value.Call("close")
	c.scope.Release()
}

// Post implements [lock.Channel].
func (c *Channel) Post(m lock.Message) error {
	return c.post(map[string]any{
		"kind": string(m.Kind), "round": m.Round,
		"holders": all(m.Holders, EncodeHolder), "waiters": all(m.Waiters, EncodeWaiter),
	})
}

func (c *Channel) post(message map[string]any) error {
	_, err := c.value.Call("postMessage", message)
	return err
}

// EncodeHolder makes a HolderInfo of the declaration file.
func EncodeHolder(h lock.Holder) map[string]any {
	return known(map[string]any{
		"resource": h.Resource, "mode": string(h.Mode), "strategy": string(h.Strategy),
		"ownerId": h.OwnerID, "ownerName": h.OwnerName, "leaseId": h.LeaseID, "token": h.Token,
		"since": millis(h.Since), "expiresAt": millis(h.ExpiresAt),
	})
}

// EncodeWaiter makes a WaiterInfo of the declaration file, but for waitsFor.
func EncodeWaiter(w lock.Waiter) map[string]any {
	return known(map[string]any{
		"resource": w.Resource, "mode": string(w.Mode), "ownerId": w.OwnerID, "ownerName": w.OwnerName,
		"since": millis(w.Since),
	})
}

// known drops the fields of which nothing is known.
func known(m map[string]any) map[string]any {
	for name, v := range m {
		if v == "" || v == int64(0) {
			delete(m, name)
		}
	}
	return m
}

func all[T any](items []T, encode func(T) map[string]any) []any {
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

// decode reads a message. Other scripts of the origin can post here too: what is
// missing or of the wrong type is left empty.
func decode(v safejs.Value) lock.Message {
	m := lock.Message{Kind: lock.MessageKind(property(v, "kind")), Round: property(v, "round")}
	each(v, "holders", func(h safejs.Value) { m.Holders = append(m.Holders, decodeHolder(h)) })
	each(v, "waiters", func(w safejs.Value) {
		m.Waiters = append(m.Waiters, lock.Waiter{
			Resource: property(w, "resource"), Mode: lock.Mode(property(w, "mode")),
			OwnerID: property(w, "ownerId"), OwnerName: property(w, "ownerName"), Since: moment(w, "since"),
		})
	})
	return m
}

func decodeHolder(h safejs.Value) lock.Holder {
	return lock.Holder{
		Resource: property(h, "resource"), Mode: lock.Mode(property(h, "mode")), Strategy: lock.Strategy(property(h, "strategy")),
		OwnerID: property(h, "ownerId"), OwnerName: property(h, "ownerName"), LeaseID: property(h, "leaseId"),
		Token: number(h, "token"), Since: moment(h, "since"), ExpiresAt: moment(h, "expiresAt"),
	}
}

func each(v safejs.Value, list string, visit func(safejs.Value)) {
	if v.Type() != safejs.TypeObject {
		return
	}
	values, err := v.Get(list)
	if err != nil || values.Type() != safejs.TypeObject {
		return
	}
	n, _ := values.Length()
	for i := range n {
		if item, err := values.Index(i); err == nil {
			visit(item)
		}
	}
}

func number(v safejs.Value, name string) int64 {
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
	ms := number(v, name)
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
