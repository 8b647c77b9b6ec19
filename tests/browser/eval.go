package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/runtime"
)

// group names the objects that an evaluation keeps alive until it ends.
const group = "holdfast"

// NowJS is an expression for the current time in milliseconds since the Unix epoch, with fractions. The clocks of all
// tabs and workers of one browser, and Go's clock on the same machine, are comparable: see the tests.
const NowJS = "(performance.timeOrigin + performance.now())"

// A JSError is a value that JavaScript threw, or with which it rejected a promise.
type JSError struct {
	Name    string // "TypeError", "AbortError", …; "" if the value is not an error
	Message string
	Code    string // the error's code property if that is a string
	Stack   string // begins with the error's text
}

func (e *JSError) Error() string { return "JavaScript: " + e.Stack }

// Eval runs a script in the page and decodes the value of its last expression as JSON into out, which may be nil. The
// script may use await at its top level. Eval awaits a promise value. Later scripts see what the script declares with
// const, let or function. The page's content security policy applies to the script, except that the script may run at
// all. An error that it throws is returned as a *JSError. A crash or close of the tab ends Eval.
func (tab *Tab) Eval(js string, out any) error { return tab.evalWithin(Limit, js, out) }

// MustEval is Eval that fails the test instead of returning an error.
func (tab *Tab) MustEval(js string, out any) {
	tab.t.Helper()
	tab.must("eval", tab.Eval(js, out))
}

// Get runs a script like Eval and returns the value of its last expression. It fails the test on an error.
func Get[T any](tab *Tab, js string) T {
	tab.t.Helper()
	var out T
	tab.MustEval(js, &out)
	return out
}

// Now returns the page's clock, see NowJS.
func (tab *Tab) Now() float64 {
	tab.t.Helper()
	return Get[float64](tab, NowJS)
}

// WaitFor waits until a script's value is truthy. If it is not within the limit, WaitFor fails the test with the last
// value. A promise is awaited, so a script may itself wait for an event. A script that throws counts as not yet
// truthy. WaitFor evaluates the script from outside the page, every few milliseconds at first and at least every 50
// ms, without timers of the page. So it works alike in a throttled, hidden or frozen tab, and costs the page only the
// script.
func (tab *Tab) WaitFor(js string, limit time.Duration) {
	tab.t.Helper()
	tab.must("wait for "+js, tab.Wait(js, limit))
}

// Wait is like WaitFor but returns the error.
func (tab *Tab) Wait(js string, limit time.Duration) error {
	begun := time.Now()
	deadline := begun.Add(limit)
	var last any // the last value before the limit ended the last evaluation
	for {
		var value any
		err := tab.evalWithin(max(time.Until(deadline), time.Millisecond), js, &value)
		switch {
		case err == nil && truthy(value):
			return nil
		case over(err):
			return err
		case err == nil:
			last = value
		case time.Now().Before(deadline):
			last = err.Error()
		}
		if time.Now().After(deadline) {
			text, _ := json.Marshal(last)
			return fmt.Errorf("not within %v; the last value was %s", limit, text)
		}
		// Each evaluation takes processor time from the awaited work, so a long wait evaluates less often.
		time.Sleep(min(max(time.Since(begun)/16, 5*time.Millisecond), 50*time.Millisecond))
	}
}

// over reports whether an error means that no later attempt can succeed.
func over(err error) bool { return errors.Is(err, errCrashed) || errors.Is(err, errClosed) }

// truthy applies JavaScript's definition of truth to a JSON value.
func truthy(value any) bool {
	switch value := value.(type) {
	case nil:
		return false
	case bool:
		return value
	case float64:
		return value != 0
	case string:
		return value != ""
	}
	return true
}

func (tab *Tab) evalWithin(limit time.Duration, js string, out any) error {
	return tab.doWithin(limit, func(ctx context.Context) error {
		// A script with top-level await returns its value wrapped. A promise value then comes back as an object and
		// is awaited in a second step. Most scripts need only the first step.
		value, thrown, err := runtime.Evaluate(js).WithReplMode(true).WithAwaitPromise(true).WithUserGesture(true).
			WithAllowUnsafeEvalBlockedByCSP(false).WithObjectGroup(group).Do(ctx)
		if value != nil && value.ObjectID != "" {
			defer release(ctx)
		}
		if err == nil && thrown == nil && value.Subtype == runtime.SubtypePromise {
			value, thrown, err = runtime.AwaitPromise(value.ObjectID).Do(ctx)
		}
		if err != nil {
			return err
		}
		if thrown != nil {
			return tab.thrown(ctx, thrown)
		}
		if out == nil {
			return nil
		}
		if value.ObjectID != "" {
			value, thrown, err = runtime.CallFunctionOn("function() { return this }").WithObjectID(value.ObjectID).
				WithReturnByValue(true).Do(ctx)
			if err != nil {
				return err
			}
			if thrown != nil {
				return tab.thrown(ctx, thrown)
			}
		}
		return decode(value, out)
	})
}

// decode decodes a value into out. The error names values that JSON cannot represent.
func decode(value *runtime.RemoteObject, out any) error {
	raw := []byte(value.Value)
	if value.UnserializableValue != "" {
		raw = []byte(strconv.Quote(string(value.UnserializableValue)))
	}
	if len(raw) == 0 {
		raw = []byte("null") // undefined
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("the value %s does not fit: %w", raw, err)
	}
	return nil
}

// thrown describes the value that a script threw.
func (tab *Tab) thrown(ctx context.Context, details *runtime.ExceptionDetails) error {
	failure := &JSError{Stack: describe(details)}
	if details.Exception == nil || details.Exception.ObjectID == "" {
		return failure
	}
	const fields = "function() { return [this.name, this.message, this.code].map(v => typeof v === 'string' ? v : '') }"
	value, again, err := runtime.CallFunctionOn(fields).WithObjectID(details.Exception.ObjectID).
		WithReturnByValue(true).Do(ctx)
	var parts [3]string
	if err == nil && again == nil && decode(value, &parts) == nil {
		failure.Name, failure.Message, failure.Code = parts[0], parts[1], parts[2]
	}
	return failure
}

// describe returns the text and the stack of an exception.
func describe(details *runtime.ExceptionDetails) string {
	if details.Exception == nil {
		return details.Text
	}
	if text := details.Exception.Description; text != "" {
		return text
	}
	return details.Text + " " + string(details.Exception.Value)
}
