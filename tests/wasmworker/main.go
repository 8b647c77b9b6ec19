// Command wasmworker runs a Go program compiled to js/wasm in a dedicated worker of headless Chromium. It passes on
// the program's output and exit code, and leaves neither process nor profile behind. It runs in the folder of the
// package, like go test:
//
//	GOOS=js GOARCH=wasm go test -c -o .cache/opfs.wasm ./opfs
//	cd opfs && ../.cache/wasmworker ../.cache/opfs.wasm -test.run TestKilledHolderIsReplaced
//
// Sync access handles exist only in dedicated workers, and wasmbrowsertest runs a program in the page. The program
// gets the arguments unchanged but no environment. Every run has a new profile.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

//go:embed page.html worker.js
var assets embed.FS

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: wasmworker program.wasm [arguments]")
		os.Exit(2)
	}
	// go test sends SIGQUIT when a test has run too long.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	code, err := run(ctx, os.Args[1], os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wasmworker:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// message is what the page reports through its binding.
type message struct{ Kind, Text string }

// run returns the exit code of the program.
func run(ctx context.Context, program string, args []string) (int, error) {
	handler, err := serve(program)
	if err != nil {
		return 0, err
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	defer server.CloseClientConnections()
	tab, end, err := start(ctx)
	if err != nil {
		return 0, err
	}
	defer end()

	messages := make(chan message, 1024)
	crashed := make(chan struct{}, 1)
	chromedp.ListenTarget(tab, func(event any) {
		switch e := event.(type) {
		case *cdpruntime.EventBindingCalled:
			var m message
			if json.Unmarshal([]byte(e.Payload), &m) == nil {
				messages <- m
			}
		case *target.EventTargetCrashed:
			crashed <- struct{}{}
		}
	})
	query, err := json.Marshal(append([]string{filepath.Base(program)}, args...))
	if err != nil {
		return 0, err
	}
	address := strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/?" + url.QueryEscape(string(query))
	if err := chromedp.Run(tab, cdpruntime.AddBinding("report"), chromedp.Navigate(address)); err != nil {
		return 0, fmt.Errorf("the page does not open: %w", err)
	}
	for {
		select {
		case m := <-messages:
			if done, code, err := m.act(); done {
				return code, err
			}
		case <-crashed:
			return 0, errors.New("the renderer crashed")
		case <-ctx.Done():
			return 0, errors.New("interrupted")
		}
	}
}

func (m message) act() (done bool, code int, err error) {
	switch m.Kind {
	case "out":
		_, err = os.Stdout.WriteString(m.Text)
		return err != nil, 0, err
	case "err":
		_, err = os.Stderr.WriteString(m.Text)
		return err != nil, 0, err
	case "exit":
		_, err = fmt.Sscan(m.Text, &code)
		return true, code, err
	default:
		return true, 0, fmt.Errorf("the worker failed: %s", m.Text)
	}
}

// serve serves the page, the worker's script, Go's own script and the program.
func serve(program string) (http.Handler, error) {
	if _, err := os.Stat(program); err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	mux := http.NewServeMux()
	isolated := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// With these headers, workers may share memory, and clocks are precise.
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		mux.ServeHTTP(w, r)
	})
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/program.wasm", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		http.ServeFile(w, r, program)
	})
	mux.HandleFunc("/wasm_exec.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	})
	// The working directory is the folder of the package.
	mux.Handle("/package/", http.StripPrefix("/package/", http.FileServer(http.Dir("."))))
	mux.HandleFunc("/worker.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, "worker.js") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, "page.html") })
	return isolated, nil
}

// start runs a Chromium with its own profile. end kills all of its processes.
func start(ctx context.Context) (tab context.Context, end func(), err error) {
	path := browser.FindShell()
	if path == "" {
		return nil, nil, errors.New("no Chromium found; install the package chromium (or Google Chrome) and put it on the PATH")
	}
	profile, err := os.MkdirTemp("", "hfw-")
	if err != nil {
		return nil, nil, err
	}
	var process *exec.Cmd
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.Env("TMPDIR="+profile), chromedp.WSURLReadTimeout(browser.Limit),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.DisableGPU, chromedp.Flag("js-flags", "--liftoff-only"),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			group(cmd)
			process = cmd
		}))
	if runtime.GOOS == "linux" && os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, cancelAllocator := chromedp.NewExecAllocator(ctx, options...)
	// Protocol messages newer than the client library do not fail the test.
	tab, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	end = func() {
		if process != nil && process.Process != nil {
			_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
		}
		cancel()
		cancelAllocator()
		// Its processes may write until the last one has ended.
		for range 100 {
			if os.RemoveAll(profile) == nil && gone(process) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		_ = os.RemoveAll(profile)
	}
	if err := chromedp.Run(tab); err != nil {
		end()
		return nil, nil, fmt.Errorf("%s does not start: %w", path, err)
	}
	return tab, end, nil
}

// gone reports whether no process of the browser's group is left.
func gone(process *exec.Cmd) bool {
	return process == nil || process.Process == nil || syscall.Kill(-process.Process.Pid, 0) != nil
}

// group puts the browser's processes into one group, so that they can all be ended, and ends them with this program.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
