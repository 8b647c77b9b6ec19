// Package engines drives Chromium, Firefox and WebKitGTK through one small interface, so that one table of scenarios
// can be run against the built package in all three. It runs on Linux.
//
// What an engine or its driver cannot do is said by [Limits], and the scenarios that need it are skipped with that
// reason; nothing is skipped because a browser is missing.
package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// Limit bounds every call of an engine and of its tabs.
const Limit = 15 * time.Second

// An Engine is one running browser with a profile of its own. All its tabs share that profile, and so locks, storage
// and channels.
type Engine interface {
	// Version is the browser's own, such as "153.7.0".
	Version() string

	// Open opens a tab and returns when its page has fired "load". Whether the tab is visible is the engine's affair.
	Open(url string) (Tab, error)

	// Errors returns the errors that pages and workers left on the console since the start, uncaught exceptions
	// and violated policies included. It says what the engine tells, which may come a moment later; see [Limits].
	Errors() []string

	// Restart ends the browser by a signal, SIGKILL goes to each of its processes, and starts it again with the same profile. Its
	// tabs are gone. It is [errors.ErrUnsupported] where there is no profile to start with.
	Restart(signal syscall.Signal) error

	// Stored reports whether a file of the pages' private file systems has the text, on the disk of this machine.
	Stored(text string) bool

	// Quit ends the browser and everything it started, and removes its profile. It fails if a process is left.
	Quit() error
}

// A Tab is one page of an engine. A call on a tab that is gone is an error.
type Tab interface {
	// Run evaluates an expression that yields a promise of a string, in the page itself and under its content
	// security policy, and returns that string. What the promise waits for must not need another call on the engine:
	// classic WebDriver serves one at a time.
	Run(expression string) (string, error)

	// Reload loads the page again and returns when it has fired "load".
	Reload() error

	// Navigate leads the tab to another page and returns when that has fired "load".
	Navigate(url string) error

	// Close closes the tab as a person does. What the tab held may be freed a little later.
	Close() error

	// Kill ends the process of the page, which it shares with no other tab, and returns the moment at which it was
	// killed. No handler of the page runs. It is [errors.ErrUnsupported] where the driver does not survive that.
	Kill() (time.Time, error)

	// Suspend stops the process of the page, which it shares with no other tab, or lets it go on. It is [errors.ErrUnsupported]
	// where the driver does not say which process that is.
	Suspend(on bool) error
}

// Options of a start.
type Options struct {
	// InsecureProxy, "host:port", is a server that answers for every host name except those of loopback, for
	// engines that have no other way to an origin that is not a secure context.
	InsecureProxy string

	// Private opens every page in a private window, in engines whose private windows refuse file storage.
	Private bool
}

// Brand is an engine that can be started.
type Brand struct {
	Name  string
	Start func(testing.TB, Options) (Engine, error)
}

// All are the engines, in the order of the tables.
var All = []Brand{
	{"Chromium", startChromium},
	{"Firefox", startFirefox},
	{"WebKitGTK", startWebKit},
}

// A JSError is what JavaScript threw, or rejected a promise with.
type JSError struct {
	Name, Message, Code, Stack string
}

func (e *JSError) Error() string {
	return fmt.Sprintf("JavaScript: %s: %s\n%s", e.Name, e.Message, e.Stack)
}

// Eval runs the body of an async function in a tab and decodes what it returns into out, as JSON; out may be nil.
// Names are kept from one call to the next only if they are properties of globalThis. What the body throws is
// returned as a *JSError.
func Eval(tab Tab, body string, out any) error {
	answer, err := tab.Run(`(async () => {` + body + `
})().then(value => JSON.stringify({value}), e => JSON.stringify({error: {name: String(e?.name), message: String(e?.message ?? e),
	code: typeof e?.code === "string" ? e.code : "", stack: String(e?.stack)}}))`)
	if err != nil {
		return err
	}
	var outcome struct {
		Value json.RawMessage
		Error *JSError
	}
	if err := json.Unmarshal([]byte(answer), &outcome); err != nil {
		return fmt.Errorf("the answer %q: %w", answer, err)
	}
	switch {
	case outcome.Error != nil:
		return outcome.Error
	case out == nil:
		return nil
	case outcome.Value == nil: // undefined
		outcome.Value = json.RawMessage("null")
	}
	return json.Unmarshal(outcome.Value, out)
}

// Wait asks until an expression is true and returns an error if it is not within the limit. It asks from outside, so
// no timer of the page takes part and a hidden tab is as good as a visible one.
func Wait(tab Tab, expression string, limit time.Duration) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); ; <-tick.C {
		var value bool
		err := Eval(tab, "return Boolean("+expression+")", &value)
		var thrown *JSError
		switch {
		case err == nil && value:
			return nil
		case err != nil && !errors.As(err, &thrown):
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("%s: not within %v (%w)", expression, limit, err)
		}
	}
}
