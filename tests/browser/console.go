package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// A Message is one line of a tab's console, from its page or one of its workers.
type Message struct {
	Source string // "page" or "worker"
	Level  string // "log", "debug", "info", "warning", "error"; an uncaught exception is "exception"
	Text   string // the arguments, joined by spaces; for an exception, its stack

	exception int64 // the protocol's number of an exception, which Chromium may revoke
}

func (m Message) String() string { return m.Source + " " + m.Level + ": " + m.Text }

// failure reports whether the line reports an error.
func (m Message) failure() bool {
	return m.Level == "error" || m.Level == "exception" || m.Level == "assert"
}

// Console returns the console lines of the page and its dedicated workers, including uncaught exceptions, unhandled
// rejections and the browser's own errors (a policy violation, a missing file). It includes the lines of earlier
// documents of the tab.
func (tab *Tab) Console() []Message {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(tab.console)
}

// Quiet fails the test for every console error that matches none of the patterns (regular expressions).
func (tab *Tab) Quiet(expected ...string) {
	tab.t.Helper()
	for _, message := range tab.Console() {
		if !message.failure() {
			continue
		}
		known := slices.ContainsFunc(expected, func(pattern string) bool {
			return regexp.MustCompile(pattern).MatchString(message.Text)
		})
		if !known {
			tab.t.Errorf("browser: unexpected on the console: %s", message)
		}
	}
}

// worker is a live dedicated worker.
type worker struct {
	ctx      context.Context // of its own session
	cancel   context.CancelFunc
	attached chan struct{} // closed when the session works
}

// Workers returns the number of live dedicated workers that the page itself started. Workers of workers do not count.
func (tab *Tab) Workers() int {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return len(tab.workers)
}

// record stores an event if it is a console line.
func (tab *Tab) record(source string, event any) {
	message := Message{Source: source}
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		message.Level = string(event.Type)
		message.Text = join(event.Args)
	case *runtime.EventExceptionThrown:
		message.Level = "exception"
		message.Text = describe(event.ExceptionDetails)
		message.exception = event.ExceptionDetails.ExceptionID
	case *runtime.EventExceptionRevoked: // a handler was added to the rejection later
		tab.mu.Lock()
		defer tab.mu.Unlock()
		tab.console = slices.DeleteFunc(tab.console, func(m Message) bool {
			return m.Source == source && m.exception != 0 && m.exception == event.ExceptionID
		})
		return
	case *log.EventEntryAdded:
		if event.Entry.Source == log.SourceWorker || event.Entry.WorkerID != "" {
			return // the worker's own session reports it with its arguments
		}
		message.Level = string(event.Entry.Level)
		message.Text = strings.TrimSpace(event.Entry.Text + " " + event.Entry.URL)
	default:
		return
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.console = append(tab.console, message)
}

// join formats the arguments of a console call as a user sees them.
func join(arguments []*runtime.RemoteObject) string {
	words := make([]string, len(arguments))
	for i, argument := range arguments {
		var text string
		switch {
		case argument.Type == runtime.TypeString && json.Unmarshal(argument.Value, &text) == nil:
			words[i] = text
		case argument.Description != "":
			words[i] = argument.Description
		case argument.UnserializableValue != "":
			words[i] = string(argument.UnserializableValue)
		case len(argument.Value) > 0:
			words[i] = string(argument.Value)
		default:
			words[i] = fmt.Sprint(argument.Type)
		}
	}
	return strings.Join(words, " ")
}

// workerStarted counts a dedicated worker and listens to its console. Chromium replays the worker's earlier lines.
func (tab *Tab) workerStarted(event *target.EventAttachedToTarget) {
	if event.TargetInfo.Type != "worker" {
		return
	}
	ctx, cancel := context.WithCancel(tab.ctx)
	session, stop := chromedp.NewContext(ctx, chromedp.WithTargetID(event.TargetInfo.TargetID))
	w := &worker{ctx: session, cancel: cancel, attached: make(chan struct{})}
	tab.mu.Lock()
	tab.workers[event.SessionID] = w
	tab.mu.Unlock()
	go func() {
		chromedp.ListenTarget(session, func(event any) { tab.record("worker", event) })
		if chromedp.Run(session) != nil {
			stop()
			return
		}
		close(w.attached)
	}()
}

func (tab *Tab) workerEnded(session target.SessionID) {
	tab.mu.Lock()
	w := tab.workers[session]
	delete(tab.workers, session)
	tab.mu.Unlock()
	if w != nil {
		w.cancel()
	}
}
