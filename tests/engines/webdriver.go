package engines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// webdriver is a session of the classic WebDriver protocol (https://www.w3.org/TR/webdriver2/). Commands go to the
// current tab, so mu is held from choosing the tab to the answer.
type webdriver struct {
	client  http.Client
	base    string // "http://127.0.0.1:port"
	session string // its path, "/session/…"

	cover string // handle of the browser's first tab

	mu      sync.Mutex
	current string
}

// send makes one request and decodes the answer's value into out, which may be nil.
func (w *webdriver) send(method, path string, body, out any) error {
	var data []byte
	if method == http.MethodPost {
		if body == nil {
			body = map[string]any{}
		}
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, w.base+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		var failure struct{ Error, Message string }
		_ = json.Unmarshal(answer.Value, &failure)
		return fmt.Errorf("%s %s: %s: %s", method, path, failure.Error, failure.Message)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, out)
}

// in sends a command to a tab.
func (w *webdriver) in(handle, method, path string, body, out any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.choose(handle); err != nil {
		return err
	}
	return w.send(method, w.session+path, body, out)
}

// choose makes a tab the current one.
func (w *webdriver) choose(handle string) error {
	if w.current == handle {
		return nil
	}
	err := w.send(http.MethodPost, w.session+"/window", map[string]any{"handle": handle}, nil)
	if err == nil {
		w.current = handle
	}
	return err
}

// open opens a tab and returns its handle.
func (w *webdriver) open() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var window struct{ Handle string }
	err := w.send(http.MethodPost, w.session+"/window/new", map[string]any{"type": "tab"}, &window)
	return window.Handle, err
}

// close closes a tab. Then the first tab becomes current, because commands need a current tab.
func (w *webdriver) close(handle string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.choose(handle); err != nil {
		return err
	}
	if err := w.send(http.MethodDelete, w.session+"/window", nil, nil); err != nil {
		return err
	}
	return w.choose(w.cover)
}
