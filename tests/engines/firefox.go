package engines

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// firefox is driven by WebDriver BiDi on the browser's own remote debugging port.
type firefox struct {
	processes *processes
	bidi      *bidi
	chrome    string // the browser's own window, which knows the processes of its tabs
	version   string

	path, profile string

	mu     sync.Mutex
	errors []string
}

type firefoxTab struct {
	engine    *firefox
	id        string
	suspended int // the suspended process
}

// preferences of the new profile: an insecure origin, a process for each tab, no requests to the internet.
var preferences = map[string]any{
	"network.dns.localDomains":                             browser.InsecureHost,
	"dom.security.https_first":                             false,
	"dom.ipc.processCount.webIsolated":                     16, // otherwise one site's tabs share a process
	"dom.ipc.processPrelaunch.enabled":                     false,
	"browser.shell.checkDefaultBrowser":                    false,
	"browser.startup.page":                                 0,
	"browser.newtabpage.enabled":                           false,
	"browser.tabs.warnOnClose":                             false,
	"browser.tabs.unloadOnLowMemory":                       false,
	"browser.safebrowsing.update.enabled":                  false,
	"app.update.disabledForTesting":                        true,
	"app.normandy.enabled":                                 false,
	"datareporting.policy.dataSubmissionEnabled":           false,
	"network.captive-portal-service.enabled":               false,
	"network.connectivity-service.enabled":                 false,
	"services.settings.server":                             "data:,#remote-settings-dummy/v1",
	"toolkit.telemetry.enabled":                            false,
	"toolkit.startup.max_resumed_crashes":                  -1,
	"security.sandbox.warn_unprivileged_namespaces":        false,
	"extensions.systemAddon.update.enabled":                false,
	"browser.topsites.contile.enabled":                     false,
	"browser.region.network.url":                           "",
	"media.gmp-manager.updateEnabled":                      false,
	"browser.sessionstore.resume_from_crash":               false,
	"browser.tabs.remote.separatePrivilegedContentProcess": false,
}

func startFirefox(_ testing.TB, o Options) (Engine, error) {
	path, err := find("Firefox", "firefox-esr", "firefox-esr", "firefox")
	if err != nil {
		return nil, err
	}
	p, err := newProcesses()
	if err != nil {
		return nil, err
	}
	f := &firefox{processes: p, path: path, profile: filepath.Join(p.home, "profile")}
	if err = f.prepare(o); err == nil {
		err = f.start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not start: %w", path, err), f.Quit())
	}
	return f, nil
}

// prepare makes the profile.
func (f *firefox) prepare(o Options) error {
	if err := os.Mkdir(f.profile, 0o700); err != nil {
		return err
	}
	var user strings.Builder
	all := maps.Clone(preferences)
	all["browser.privatebrowsing.autostart"] = o.Private
	for name, value := range all {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		fmt.Fprintf(&user, "user_pref(%q, %s);\n", name, text)
	}
	return os.WriteFile(filepath.Join(f.profile, "user.js"), []byte(user.String()), 0o600)
}

// start starts the browser's process with its profile.
func (f *firefox) start() error {
	output, input := io.Pipe()
	address := make(chan string, 1)
	go listening(output, address)
	environment := []string{"MOZ_CRASHREPORTER_DISABLE=1", "MOZ_DISABLE_AUTO_SAFE_MODE=1", "DBUS_SESSION_BUS_ADDRESS=disabled:"}
	err := f.processes.start(input, environment, nil, f.path, "--headless", "--no-remote", "--profile", f.profile,
		"--remote-debugging-port", "0", "--remote-allow-system-access", "about:blank")
	if err != nil {
		return err
	}
	select {
	case url := <-address:
		return f.connect(url + "/session")
	case <-time.After(2 * browser.Limit):
		return fmt.Errorf("it does not say within %v on which port it listens", 2*browser.Limit)
	}
}

// listening reads the address of the remote debugging port from Firefox's output, and discards the rest.
func listening(output io.Reader, address chan<- string) {
	line := regexp.MustCompile(`^WebDriver BiDi listening on (ws://\S+)`)
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		if match := line.FindStringSubmatch(scanner.Text()); match != nil {
			address <- match[1]
		}
	}
	_, _ = io.Copy(io.Discard, output) // after a line that is too long for the scanner
}

func (f *firefox) connect(url string) error {
	var err error
	if f.bidi, err = dialBiDi(url, f.event); err != nil {
		return err
	}
	var session struct {
		Capabilities struct{ BrowserVersion string }
	}
	if err := f.bidi.call("session.new", map[string]any{"capabilities": map[string]any{}}, &session); err != nil {
		return err
	}
	f.version = session.Capabilities.BrowserVersion
	if err := f.bidi.call("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}, nil); err != nil {
		return err
	}
	var tree struct{ Contexts []struct{ Context string } }
	if err := f.bidi.call("browsingContext.getTree", map[string]any{"moz:scope": "chrome"}, &tree); err != nil {
		return err
	}
	if len(tree.Contexts) == 0 {
		return errors.New("it has no window")
	}
	f.chrome = tree.Contexts[0].Context
	return nil
}

func (f *firefox) event(method string, params json.RawMessage) {
	var entry struct{ Level, Type, Text string }
	if method != "log.entryAdded" || json.Unmarshal(params, &entry) != nil || entry.Level != "error" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, entry.Type+": "+entry.Text)
}

func (f *firefox) Version() string { return f.version }

func (f *firefox) Errors() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.errors...)
}

func (f *firefox) Open(url string) (Tab, error) {
	var created struct{ Context string }
	if err := f.bidi.call("browsingContext.create", map[string]any{"type": "tab"}, &created); err != nil {
		return nil, err
	}
	tab := &firefoxTab{engine: f, id: created.Context}
	return tab, tab.Navigate(url)
}

// Restart sends SIGTERM only to the main process, for an orderly end.
func (f *firefox) Restart(signal syscall.Signal) error {
	err := f.processes.stop(signal)
	f.bidi.close()
	if err != nil {
		return err
	}
	return f.start()
}

// Stored searches Firefox's folder for the private file system of each origin.
func (f *firefox) Stored(text string) bool { return browser.StoredBelow(f.profile, "/fs/", text) }

func (f *firefox) Quit() error {
	if f.bidi != nil {
		f.bidi.close()
	}
	return f.processes.quit()
}

func (tab *firefoxTab) Run(expression string) (string, error) {
	return tab.engine.bidi.evaluate(tab.id, expression)
}

func (tab *firefoxTab) Reload() error {
	return tab.engine.bidi.call("browsingContext.reload", map[string]any{"context": tab.id, "wait": "complete"}, nil)
}

func (tab *firefoxTab) Close() error {
	return tab.engine.bidi.call("browsingContext.close", map[string]any{"context": tab.id}, nil)
}

func (tab *firefoxTab) Navigate(url string) error {
	return tab.engine.bidi.call("browsingContext.navigate", map[string]any{"context": tab.id, "url": url, "wait": "complete"}, nil)
}

func (tab *firefoxTab) Kill() (time.Time, error) {
	pid, err := tab.process()
	if err != nil {
		return time.Time{}, err
	}
	return time.Now(), syscall.Kill(pid, syscall.SIGKILL)
}

func (tab *firefoxTab) Suspend(on bool) (err error) {
	if !on {
		return syscall.Kill(tab.suspended, syscall.SIGCONT)
	}
	if tab.suspended, err = tab.process(); err != nil {
		return err
	}
	return syscall.Kill(tab.suspended, syscall.SIGSTOP)
}

// process gives the page a unique title, and asks the browser's window for the process of the tab with that title.
func (tab *firefoxTab) process() (int, error) {
	title := "to be killed " + tab.id
	if err := Eval(tab, "document.title = "+strconv.Quote(title), nil); err != nil {
		return 0, err
	}
	pid := func(browser string) string { return browser + ".browsingContext.currentWindowGlobal?.osPid" }
	for deadline := time.Now().Add(browser.Limit); ; time.Sleep(5 * time.Millisecond) {
		answer, err := tab.engine.bidi.evaluate(tab.engine.chrome, `(async () => {
			const browsers = gBrowser.tabs.map(tab => tab.linkedBrowser)
			const mine = browsers.find(browser => browser.contentTitle === `+strconv.Quote(title)+`)
			const shared = browsers.filter(browser => browser !== mine && mine && `+pid("browser")+` === `+pid("mine")+`)
			return JSON.stringify({pid: mine ? `+pid("mine")+` : 0, shared: shared.length})
		})()`)
		if err != nil {
			return 0, err
		}
		var process struct{ PID, Shared int }
		if err := json.Unmarshal([]byte(answer), &process); err != nil {
			return 0, err
		}
		switch {
		case process.Shared > 0:
			return 0, fmt.Errorf("process %d is shared by other tabs", process.PID)
		case process.PID > 0:
			return process.PID, nil
		case time.Now().After(deadline):
			return 0, fmt.Errorf("the process of the tab is not known within %v", browser.Limit)
		}
	}
}
