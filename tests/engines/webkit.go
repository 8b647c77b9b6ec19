package engines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// webkit is WebKitGTK's MiniBrowser under a virtual display, driven by WebKitWebDriver.
type webkit struct {
	processes *processes
	driver    *webdriver
	version   string

	mu     sync.Mutex
	errors []string
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
		return nil, errors.New("WebKitGTK's MiniBrowser is missing: install the package webkit2gtk-driver (apt-get install webkit2gtk-driver)")
	}
	p, err := newProcesses()
	if err != nil {
		return nil, err
	}
	w := &webkit{processes: p}
	if err := w.start(xvfb, driver, browsers[len(browsers)-1], options); err != nil {
		return nil, errors.Join(fmt.Errorf("WebKitGTK does not start: %w", err), w.Quit())
	}
	return w, nil
}

func (w *webkit) start(xvfb, driver, browser string, options Options) error {
	display, err := w.display(xvfb)
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	output, input := io.Pipe()
	go w.listen(output)
	environment := []string{"DISPLAY=" + display, "GDK_BACKEND=x11", "DBUS_SESSION_BUS_ADDRESS=disabled:", "NO_AT_BRIDGE=1",
		"GTK_A11Y=none", "LIBGL_ALWAYS_SOFTWARE=1", "G_MESSAGES_DEBUG="}
	if err := w.processes.start(input, environment, nil, driver, "--host=local", "--port="+strconv.Itoa(port)); err != nil {
		return err
	}
	w.driver = &webdriver{base: "http://127.0.0.1:" + strconv.Itoa(port), client: http.Client{Timeout: Limit}}
	arguments := []string{"--automation", "--enable-write-console-messages-to-stdout=true"}
	if options.Storage {
		arguments = append(arguments, "--features=+StorageAPI,+FileSystem,+FileSystemWritableStream")
	}
	capabilities := map[string]any{"webkitgtk:browserOptions": map[string]any{"binary": browser, "args": arguments}}
	if options.InsecureProxy != "" {
		capabilities["proxy"] = map[string]any{"proxyType": "manual", "httpProxy": options.InsecureProxy,
			"noProxy": []string{"localhost", "127.0.0.1"}}
	}
	return w.begin(capabilities)
}

// display starts a virtual display and returns its name. Xvfb says on descriptor 3 which number was free.
func (w *webkit) display(xvfb string) (string, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = reader.Close() }()
	err = w.processes.start(nil, nil, writer, xvfb, "-displayfd", "3", "-screen", "0", "1024x768x24", "-nolisten", "tcp")
	_ = writer.Close()
	if err != nil {
		return "", err
	}
	if err := reader.SetReadDeadline(time.Now().Add(Limit)); err != nil {
		return "", err
	}
	number, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("Xvfb names no display: %w", err)
	}
	return ":" + strings.TrimSpace(number), nil
}

// begin makes the session, as soon as the driver takes requests.
func (w *webkit) begin(capabilities map[string]any) error {
	for deadline := time.Now().Add(Limit); ; time.Sleep(10 * time.Millisecond) {
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

// listen keeps the errors among the console messages, which MiniBrowser prints.
func (w *webkit) listen(output io.Reader) {
	scanner := bufio.NewScanner(output)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		text := scanner.Text()
		if strings.HasPrefix(text, "CONSOLE ") && strings.Contains(text, " ERROR ") {
			w.mu.Lock()
			w.errors = append(w.errors, text)
			w.mu.Unlock()
		}
	}
	_, _ = io.Copy(io.Discard, output)
}

func (w *webkit) Version() string { return w.version }

func (w *webkit) Errors() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.errors...)
}

func (w *webkit) Open(url string) (Tab, error) {
	handle, err := w.driver.open()
	if err != nil {
		return nil, err
	}
	return &webkitTab{w, handle}, w.driver.in(handle, http.MethodPost, "/url", map[string]any{"url": url}, nil)
}

// Quit kills the browser: an orderly end would save what is thrown away.
func (w *webkit) Quit() error { return w.processes.quit() }

func (tab *webkitTab) Run(expression string) (out string, err error) {
	err = tab.engine.driver.in(tab.handle, http.MethodPost, "/execute/sync",
		map[string]any{"script": "return " + expression, "args": []any{}}, &out)
	return out, err
}

func (tab *webkitTab) Reload() error {
	return tab.engine.driver.in(tab.handle, http.MethodPost, "/refresh", nil, nil)
}

func (tab *webkitTab) Close() error {
	return tab.engine.driver.close(tab.handle)
}

// Kill is not possible: WebKitWebDriver ends its session, and with it every tab, when any page's process dies.
func (tab *webkitTab) Kill() (time.Time, error) { return time.Time{}, errors.ErrUnsupported }

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
