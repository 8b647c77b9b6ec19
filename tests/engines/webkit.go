package engines

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/loopback"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// webkit is WebKitGTK's MiniBrowser under a virtual display, driven by WebKitWebDriver.
type webkit struct {
	processes *processes
	driver    *webdriver
	version   string
}

type webkitTab struct {
	engine *webkit
	handle string
}

func startWebKit(_ testing.TB, options Options) (Engine, error) {
	driver, err := find("WebKitGTK's driver", "webkit2gtk-driver", "WebKitWebDriver")
	if err != nil {
		return nil, err
	}
	xvfb, err := find("a display for WebKitGTK", "xvfb", "Xvfb")
	if err != nil {
		return nil, err
	}
	browsers, _ := filepath.Glob("/usr/lib*/*/webkit*gtk-*/MiniBrowser")
	more, _ := filepath.Glob("/usr/lib*/webkit*gtk-*/MiniBrowser")
	if browsers = append(browsers, more...); len(browsers) == 0 {
		return nil, missing("WebKitGTK's MiniBrowser", "webkit2gtk-driver")
	}
	p, err := newProcesses()
	if err != nil {
		return nil, err
	}
	w := &webkit{processes: p}
	said, err := os.Create(filepath.Join(p.home, "output"))
	if err == nil {
		err = w.start(said, xvfb, driver, browsers[len(browsers)-1], options)
	}
	if err != nil {
		text, _ := os.ReadFile(said.Name())
		return nil, errors.Join(fmt.Errorf("WebKitGTK does not start: %w; it said: %s", err, text), w.Quit())
	}
	return w, nil
}

func (w *webkit) start(said *os.File, xvfb, driver, program string, options Options) error {
	display, err := w.display(said, xvfb)
	if err != nil {
		return err
	}
	port, err := loopback.FreePort()
	if err != nil {
		return err
	}
	environment := []string{"DISPLAY=" + display, "GDK_BACKEND=x11", "DBUS_SESSION_BUS_ADDRESS=disabled:", "NO_AT_BRIDGE=1",
		"GTK_A11Y=none", "LIBGL_ALWAYS_SOFTWARE=1", "G_MESSAGES_DEBUG="}
	if err := w.processes.start(said, environment, nil, driver, "--host=local", "--port="+port); err != nil {
		return err
	}
	w.driver = &webdriver{base: "http://127.0.0.1:" + port, client: http.Client{Timeout: browser.Limit}}
	arguments := []string{"--automation"}
	if options.InsecureProxy != "" {
		// The capability "proxy" cannot be used: its "noProxy" makes WebKitGTK 2.50 read past the end of the list and
		// crash.
		arguments = append(arguments, "--proxy=http://"+options.InsecureProxy, "--ignore-host=localhost", "--ignore-host=127.0.0.1")
	}
	return w.begin(map[string]any{"webkitgtk:browserOptions": map[string]any{"binary": program, "args": arguments}})
}

// display starts a virtual display and returns its name. Xvfb writes the free number to descriptor 3.
func (w *webkit) display(said *os.File, xvfb string) (string, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = reader.Close() }()
	err = w.processes.start(said, nil, writer, xvfb, "-displayfd", "3", "-screen", "0", "1024x768x24", "-nolisten", "tcp")
	_ = writer.Close()
	if err != nil {
		return "", err
	}
	if err := reader.SetReadDeadline(time.Now().Add(browser.Limit)); err != nil {
		return "", err
	}
	number, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("no display is named: %w", err)
	}
	return ":" + strings.TrimSpace(number), nil
}

// begin creates the session as soon as the driver accepts requests.
func (w *webkit) begin(capabilities map[string]any) error {
	for deadline := time.Now().Add(browser.Limit); ; time.Sleep(10 * time.Millisecond) {
		err := w.driver.send(http.MethodGet, "/status", nil, nil)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			return err
		}
	}
	var session struct {
		SessionID    string
		Capabilities struct{ BrowserVersion string }
	}
	err := w.driver.send(http.MethodPost, "/session",
		map[string]any{"capabilities": map[string]any{"alwaysMatch": capabilities}}, &session)
	w.driver.session = "/session/" + session.SessionID
	if err != nil {
		return err
	}
	w.version = session.Capabilities.BrowserVersion
	return w.driver.send(http.MethodGet, w.driver.session+"/window", nil, &w.driver.cover)
}

func (w *webkit) Version() string { return w.version }

// Errors returns nothing: neither the driver nor MiniBrowser in automation mode reports the console.
func (w *webkit) Errors() []string { return nil }

func (w *webkit) Open(url string) (Tab, error) {
	handle, err := w.driver.open()
	if err != nil {
		return nil, err
	}
	tab := &webkitTab{w, handle}
	return tab, tab.Navigate(url)
}

// loaded waits for another document. The driver takes the end of any load as the end of the requested one, including
// that of a new tab's blank page.
func (tab *webkitTab) loaded(other string) error {
	for deadline := time.Now().Add(browser.Limit); ; time.Sleep(5 * time.Millisecond) {
		answer, err := tab.Run(`Promise.resolve(String(document.readyState === "complete" && ` + other + `))`)
		if err == nil && answer == "true" { // an error means that the document changed during the evaluation
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the page is not loaded within %v (%w)", browser.Limit, err)
		}
	}
}

// Restart is not supported: a session of the driver keeps nothing on disk.
func (w *webkit) Restart(syscall.Signal) error { return errors.ErrUnsupported }

// Stored finds nothing: pages have no file storage.
func (w *webkit) Stored(string) bool { return false }

// Quit kills the browser, because an orderly end would save data that is thrown away.
func (w *webkit) Quit() error { return w.processes.quit() }

func (tab *webkitTab) Run(expression string) (out string, err error) {
	err = tab.engine.driver.in(tab.handle, http.MethodPost, "/execute/sync",
		map[string]any{"script": "return " + expression, "args": []any{}}, &out)
	return out, err
}

func (tab *webkitTab) Reload() error {
	before, err := tab.Run("Promise.resolve(String(performance.timeOrigin))")
	if err != nil {
		return err
	}
	if err := tab.engine.driver.in(tab.handle, http.MethodPost, "/refresh", nil, nil); err != nil {
		return err
	}
	return tab.loaded("performance.timeOrigin !== " + before)
}

func (tab *webkitTab) Navigate(url string) error {
	if err := tab.engine.driver.in(tab.handle, http.MethodPost, "/url", map[string]any{"url": url}, nil); err != nil {
		return err
	}
	return tab.loaded("location.href === " + strconv.Quote(url))
}

func (tab *webkitTab) Close() error {
	return tab.engine.driver.close(tab.handle)
}

// Kill is not supported: WebKitWebDriver ends its session, and so every tab, when any page's process dies.
func (tab *webkitTab) Kill() (time.Time, error) { return time.Time{}, errors.ErrUnsupported }

// Suspend is not supported: the driver does not report a page's process.
func (tab *webkitTab) Suspend(bool) error { return errors.ErrUnsupported }
