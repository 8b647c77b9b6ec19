package engines

import (
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// chromium is the harness of tests/browser, which itself fails its test on a fatal error.
type chromium struct {
	t       testing.TB
	browser *browser.Browser
	version string
	tabs    []*browser.Tab // closed ones too, for their consoles
}

type chromiumTab struct {
	engine *chromium
	tab    *browser.Tab
}

func startChromium(t testing.TB, _ Options) (Engine, error) {
	if browser.Find() == "" {
		return nil, missing("Chromium", "chromium")
	}
	return &chromium{t: t, browser: browser.Start(t, browser.Options{})}, nil
}

func (c *chromium) Version() string { return c.version }

func (c *chromium) Open(url string) (Tab, error) {
	tab := c.browser.Open(c.t, url)
	c.tabs = append(c.tabs, tab)
	if c.version == "" {
		const js = `navigator.userAgentData?.getHighEntropyValues(["uaFullVersion"]).then(v => v.uaFullVersion) ?? ""`
		if err := tab.Eval(js, &c.version); err != nil {
			return nil, err
		}
	}
	return &chromiumTab{c, tab}, nil
}

func (c *chromium) Errors() (found []string) {
	for _, tab := range c.tabs {
		for _, message := range tab.Console() {
			if slices.Contains([]string{"error", "exception", "assert"}, message.Level) {
				found = append(found, message.String())
			}
		}
	}
	return found
}

func (c *chromium) Restart(signal syscall.Signal) error {
	c.browser.Restart(c.t, signal)
	return nil
}

func (c *chromium) Stored(text string) bool { return c.browser.Stored(text) }

// Quit does nothing: the harness ends its browser with the test, and fails the test if a process is left.
func (c *chromium) Quit() error { return nil }

func (tab *chromiumTab) Run(expression string) (out string, err error) {
	var value any
	if err := tab.tab.Eval(expression, &value); err != nil {
		return "", err
	}
	out, ok := value.(string)
	if !ok {
		text, _ := json.Marshal(value)
		return "", fmt.Errorf("not a string: %s", text)
	}
	return out, nil
}

func (tab *chromiumTab) Reload() error             { tab.tab.Reload(); return nil }
func (tab *chromiumTab) Navigate(url string) error { tab.tab.Navigate(url); return nil }
func (tab *chromiumTab) Close() error              { tab.tab.Close(); return nil }

func (tab *chromiumTab) Kill() (time.Time, error) {
	if _, err := tab.tab.Renderer(); err != nil { // this takes a while, so it runs before the clock starts
		return time.Time{}, err
	}
	now := time.Now()
	tab.tab.Crash()
	return now, nil
}

func (tab *chromiumTab) Suspend(on bool) error {
	if on {
		tab.tab.Suspend()
	} else {
		tab.tab.Continue()
	}
	return nil
}
