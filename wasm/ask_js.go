//go:build js && wasm

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

// questions are those that the page has not answered yet, by their numbers.
type questions struct {
	mu    sync.Mutex
	last  int
	waits map[int]chan safejs.Value
}

// asker sends events and questions to the page, in the name of one AutoSave or of the whole Holdfast.
type asker struct {
	s  *service
	id int // the page's number for the AutoSave; 0 for the whole Holdfast
}

// askLimit bounds a question that has no limit of its own.
const askLimit = 10 * time.Second

// event returns an event without fields.
func event(what string) *jsbridge.Object {
	o := &jsbridge.Object{}
	o.Text("type", what)
	return o
}

// tell sends an event to the page.
func (a *asker) tell(o *jsbridge.Object, bytes parts) {
	o.Whole("saver", int64(a.id))
	var with any
	if len(bytes) > 0 {
		with = map[string]any(bytes)
	}
	_, _ = a.s.boot.Call("events", "["+string(o.JSON())+"]", with)
}

// ask sends an event to the page and returns its answer: the argument of the page's call of answer.
func (a *asker) ask(ctx context.Context, o *jsbridge.Object, bytes parts) (safejs.Value, error) {
	q := &a.s.asked
	answer := make(chan safejs.Value, 1)
	q.mu.Lock()
	if q.waits == nil {
		q.waits = make(map[int]chan safejs.Value)
	}
	q.last++
	n := q.last
	q.waits[n] = answer
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.waits, n)
		q.mu.Unlock()
	}()
	o.Whole("ask", int64(n))
	a.tell(o, bytes)
	select {
	case v := <-answer:
		if why := jsbridge.Property(v, "failed"); why != "" {
			return v, errors.New(why)
		}
		return v, nil
	case <-ctx.Done():
		return safejs.Value{}, context.Cause(ctx)
	}
}

// answer takes the page's answer to a question. It crosses as an object, because it can contain the bytes of a text.
func (s *service) answer(args []safejs.Value) (any, error) {
	n := int(jsbridge.Number(args[0], "ask"))
	s.asked.mu.Lock()
	answer := s.asked.waits[n]
	delete(s.asked.waits, n)
	s.asked.mu.Unlock()
	if answer != nil {
		answer <- args[0]
	}
	return nil, nil
}

// token asks the page for the user's token at the server.
func (s *service) token(ctx context.Context) (string, error) {
	a := asker{s: s}
	v, err := a.ask(ctx, event("token"), nil)
	if err != nil {
		return "", err
	}
	return jsbridge.Property(v, "token"), nil // of another type it is empty, which is no token
}
