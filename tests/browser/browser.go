// Package browser drives several tabs of one Chromium for the end-to-end tests: it opens, hides, freezes, suspends,
// crashes and closes them, and runs JavaScript in them.
//
// All tabs of one [Browser] are in one window and one profile. So they share locks, storage and channels, and exactly
// one of them is visible at a time. Each has its own renderer process. Every call has a time limit, and fails its
// test instead of hanging.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// Limit bounds every call without a limit of its own. It is long, so that no test depends on the speed of the machine.
const Limit = time.Minute

// Prompt is a time in milliseconds that is long even for a busy machine, but shorter than what would happen otherwise, such as a
// retry or the end of a lease.
const Prompt = 10_000.0

// A Browser is one Chromium with its own profile. Its methods may be called from several goroutines.
type Browser struct {
	options Options
	ctx     context.Context // of the cover tab, the parent of all others
	cancel  func()
	profile string
	process *exec.Cmd
	mu      sync.Mutex
	tabs    []*Tab
	spare   []*Tab     // the tabs that no test uses any more
	tracing sync.Mutex // Chromium records only one trace at a time
}

// Start gives the test a Chromium without a tab. At the end of the test the browser closes, without leaving a process
// or its profile, or it serves another test ([Run]). Start fails the test if Chromium is missing or does not start.
func Start(t testing.TB, options Options) *Browser {
	t.Helper()
	b := kept.take(options)
	if b == nil {
		var err error
		if b, err = launch(options); err != nil {
			t.Fatalf("browser: %v", err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() || !kept.put(b) {
			if err := b.end(); err != nil {
				t.Errorf("browser: %v", err)
			}
		}
	})
	return b
}

func launch(options Options) (*Browser, error) {
	profile, err := os.MkdirTemp("", "hf-") // short: the path of a socket has at most 108 bytes
	if err != nil {
		return nil, fmt.Errorf("no directory for the profile: %w", err)
	}
	b := &Browser{options: options, profile: profile}
	if err := b.run(); err != nil {
		return nil, errors.Join(err, b.end())
	}
	return b, nil
}

// run starts the browser's process with its profile.
func (b *Browser) run() error {
	path := Find()
	if b.options.Shell {
		path = FindShell()
	}
	if path == "" {
		return errors.New("no Chromium found; install the package chromium (or Google Chrome) and put it on the PATH")
	}
	allocator := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(b.profile),
		chromedp.WSURLReadTimeout(Limit),
		chromedp.Env("TMPDIR=" + b.profile), // the files of a killed browser are removed with the profile
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			// With its own process group, the test can end every child and check that none is left.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			b.process = cmd
		}),
	}
	for name, value := range b.options.flags() {
		allocator = append(allocator, chromedp.Flag(name, value))
	}
	base, cancelBase := chromedp.NewExecAllocator(context.Background(), allocator...)
	// Protocol messages newer than the client library do not fail the test.
	ctx, cancel := chromedp.NewContext(base, chromedp.WithErrorf(func(string, ...any) {}))
	b.ctx, b.cancel = ctx, func() { cancel(); cancelBase() }
	if err := chromedp.Run(ctx); err != nil {
		return fmt.Errorf("%s does not start: %w", path, err)
	}
	return nil
}

// end kills every process of the browser and removes its profile. A temporary profile needs no orderly end, which
// takes seconds. SIGKILL also ends a suspended renderer. end reports processes and files that are left.
func (b *Browser) end() (err error) {
	group := 0
	if b.process != nil && b.process.Process != nil {
		group = -b.process.Process.Pid
		_ = syscall.Kill(group, syscall.SIGKILL)
	}
	if b.cancel != nil {
		b.cancel()
	}
	if group != 0 && !gone(group, Limit) {
		err = fmt.Errorf("processes of group %d are left", -group)
	}
	return errors.Join(err, os.RemoveAll(b.profile))
}

// Find returns the path of the Chromium (or Chrome) that Start runs, or "". HOLDFAST_CHROMIUM overrides the search.
func Find() string {
	return find("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
}

// FindShell returns the path of the headless shell that Start runs for [Options.Shell], or the result of Find.
func FindShell() string {
	// Debian's command is a script that waits for this program. The program would outlive a killed test.
	if shell := find("/usr/lib/chromium/chromium-headless-shell", "chromium-headless-shell", "chrome-headless-shell", "headless-shell"); shell != "" {
		return shell
	}
	return Find()
}

func find(names ...string) string {
	if named := os.Getenv("HOLDFAST_CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Tabs returns the open tabs, oldest first, without the blank tab that covers hidden tabs.
func (b *Browser) Tabs() []*Tab {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*Tab(nil), b.tabs...)
}

// do runs an action on the browser itself, not on a tab.
func (b *Browser) do(action func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(b.ctx, Limit, errLimit)
	defer cancel()
	return action(cdp.WithExecutor(ctx, chromedp.FromContext(b.ctx).Browser))
}

// cover brings the blank tab to the front, so that every other tab is hidden.
func (b *Browser) cover() error {
	id := chromedp.FromContext(b.ctx).Target.TargetID
	return b.do(func(ctx context.Context) error { return target.ActivateTarget(id).Do(ctx) })
}

// gone reports whether every process of a group ended within the limit.
func gone(group int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if errors.Is(syscall.Kill(group, 0), syscall.ESRCH) || dead(group) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// dead reports whether the remaining processes of a group have ended and only wait for their parent, which may take
// an init process a second. Without /proc it returns false.
func dead(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The format is "pid (name) state parent group …". The name may contain anything.
		fields := strings.Fields(string(line[strings.LastIndexByte(string(line), ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(-group) && fields[0] != "Z" && fields[0] != "X" {
			return false
		}
	}
	return len(files) > 0
}
