package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// bidi is a connection with the WebDriver BiDi protocol (https://w3c.github.io/webdriver-bidi/). Several goroutines
// may make calls concurrently.
type bidi struct {
	conn  *websocket.Conn
	event func(method string, params json.RawMessage) // runs on the only goroutine that reads

	mu      sync.Mutex
	last    int
	waiting map[int]chan bidiMessage
	broken  error // the reason why calls are no longer possible
}

// bidiMessage is an answer or an event.
type bidiMessage struct {
	Type    string
	ID      int
	Result  json.RawMessage
	Error   string
	Message string
	Method  string
	Params  json.RawMessage
}

// dialBiDi connects to a browser's "/session". event receives every event, and must not make calls.
func dialBiDi(url string, event func(string, json.RawMessage)) (*bidi, error) {
	ctx, cancel := context.WithTimeout(context.Background(), browser.Limit)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(64 << 20)
	b := &bidi{conn: conn, event: event, waiting: map[int]chan bidiMessage{}}
	go b.read()
	return b, nil
}

// read dispatches messages until the connection ends.
func (b *bidi) read() {
	for {
		_, data, err := b.conn.Read(context.Background())
		var message bidiMessage
		if err == nil {
			err = json.Unmarshal(data, &message)
		}
		if err != nil {
			b.end(err)
			return
		}
		if message.Type == "event" {
			b.event(message.Method, message.Params)
			continue
		}
		b.mu.Lock()
		answer := b.waiting[message.ID]
		delete(b.waiting, message.ID)
		b.mu.Unlock()
		if answer != nil {
			answer <- message
		}
	}
}

func (b *bidi) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = fmt.Errorf("the connection to the browser has ended: %w", err)
	for _, answer := range b.waiting {
		close(answer)
	}
	b.waiting = nil
}

// call sends a command and decodes its result into out, which may be nil. [browser.Limit] bounds it.
func (b *bidi) call(method string, params, out any) error {
	answer := make(chan bidiMessage, 1)
	b.mu.Lock()
	if b.broken != nil {
		b.mu.Unlock()
		return b.broken
	}
	b.last++
	id := b.last
	b.waiting[id] = answer
	b.mu.Unlock()

	data, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), browser.Limit)
	defer cancel()
	if err := b.conn.Write(ctx, websocket.MessageText, data); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case message, ok := <-answer:
		switch {
		case !ok:
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.broken
		case message.Type == "error":
			return fmt.Errorf("%s: %s: %s", method, message.Error, message.Message)
		case out == nil:
			return nil
		}
		return json.Unmarshal(message.Result, out)
	case <-ctx.Done():
		b.mu.Lock()
		delete(b.waiting, id)
		b.mu.Unlock()
		return fmt.Errorf("%s: no answer within %v", method, browser.Limit)
	}
}

// evaluate runs an expression in a browsing context, awaits it and returns its value, which must be a string.
func (b *bidi) evaluate(context, expression string) (string, error) {
	var outcome struct {
		Type   string
		Result struct {
			Type  string
			Value json.RawMessage
		}
		ExceptionDetails struct{ Text string }
	}
	err := b.call("script.evaluate", map[string]any{"expression": expression, "awaitPromise": true,
		"target": map[string]any{"context": context}}, &outcome)
	switch {
	case err != nil:
		return "", err
	case outcome.Type != "success":
		return "", errors.New("JavaScript: " + outcome.ExceptionDetails.Text)
	case outcome.Result.Type != "string":
		return "", fmt.Errorf("not a string, but of type %s", outcome.Result.Type)
	}
	var value string
	return value, json.Unmarshal(outcome.Result.Value, &value)
}

// close ends the connection without waiting for the browser.
func (b *bidi) close() { _ = b.conn.CloseNow() }
