// Package engines drives Chromium, Firefox and WebKitGTK through one small interface, so that one table of scenarios
// can run against the built package in all three. It runs on Linux.
//
// [Limits] lists what an engine or its driver cannot do. Scenarios that need it are skipped with that reason. A
// missing browser never skips a scenario.
package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// An Engine is one running browser with its own profile. All its tabs share that profile, and so locks, storage and
// channels. The Limit of package browser bounds every call of an engine and of its tabs.
type Engine interface {
	// Version is the browser's version, such as "153.7.0".
	Version() string

	// Open opens a tab and returns when its page has fired "load". The engine decides whether the tab is visible.
	Open(url string) (Tab, error)

	// Errors returns the console errors of pages and workers since the start, including uncaught exceptions and
	// policy violations. An engine may report an error a moment later; see [Limits].
	Errors() []string

	// Restart ends the browser with a signal and starts it again with the same profile. SIGKILL goes to each of its
	// processes. Its tabs are gone. It returns [errors.ErrUnsupported] if there is no profile to start with.
	Restart(signal syscall.Signal) error

	// Stored reports whether a file of the pages' private file systems contains the text, on the disk of this
	// machine.
	Stored(text string) bool

	// Quit ends the browser and all its processes, and removes its profile. It fails if a process is left.
	Quit() error
}

// A Tab is one page of an engine. A call on a closed tab returns an error.
type Tab interface {
	// Run evaluates an expression that yields a promise of a string, in the page itself and under its content
	// security policy, and returns that string. The promise must not depend on another call on the engine, because
	// classic WebDriver serves one call at a time.
	Run(expression string) (string, error)

	// Reload reloads the page and returns when it has fired "load".
	Reload() error

	// Navigate loads another page in the tab and returns when that page has fired "load".
	Navigate(url string) error

	// Close closes the tab as a user does. The tab's resources may be freed a little later.
	Close() error

	// Kill ends the process of the page, which no other tab shares, and returns the moment of the kill. No handler of
	// the page runs. It returns [errors.ErrUnsupported] if the driver does not survive that.
	Kill() (time.Time, error)

	// Suspend stops the process of the page, which no other tab shares, or continues it. It returns
	// [errors.ErrUnsupported] if the driver does not report that process.
	Suspend(on bool) error
}

// Options configure a start.
type Options struct {
	// InsecureProxy, "host:port", is a server that answers for every host name except loopback names. It is for
	// engines that have no other way to an insecure origin.
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

// A JSError is a value that JavaScript threw, or with which it rejected a promise.
type JSError struct {
	Name, Message, Code, Stack string
}

func (e *JSError) Error() string {
	return fmt.Sprintf("JavaScript: %s: %s\n%s", e.Name, e.Message, e.Stack)
}

// Eval runs the body of an async function in a tab and decodes its result as JSON into out, which may be nil. Only
// properties of globalThis persist between calls. An error that the body throws is returned as a *JSError.
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

// Wait evaluates an expression until it is true, and returns an error after the limit. It polls from outside, without
// timers of the page, so a hidden tab is as good as a visible one.
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
