// Package browser drives several tabs of one Chromium for the end-to-end tests: it opens, hides, freezes,
// suspends, crashes and closes them, and runs JavaScript in them.
//
// All tabs of one [Browser] lie in one window and one profile, so they share locks, storage and channels, exactly
// one of them is visible at a time, and each has a renderer process of its own. Every call is bounded in time and
// fails its test rather than hang.
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

// Limit bounds every call that has no limit of its own.
const Limit = 15 * time.Second

// A Browser is one Chromium with a profile of its own. Its methods may be called from several goroutines.
type Browser struct {
	options Options
	ctx     context.Context // of the cover tab, parent of all others
	cancel  func()
	profile string
	process *exec.Cmd
	mu      sync.Mutex
	tabs    []*Tab
	spare   []*Tab     // of the tabs, those that nobody uses any more
	tracing sync.Mutex // Chromium records one trace at a time
}

// Start gives the test a Chromium without a tab. When the test ends the browser is closed, none of its processes is left
// and its profile is removed, or it serves another test ([Run]). It fails the test where Chromium is missing or does
// not start.
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
	profile, err := os.MkdirTemp("", "hf-") // short: a socket in it has at most 108 bytes
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
		chromedp.Env("TMPDIR=" + b.profile), // what a killed browser leaves goes with the profile
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			// A group of its own makes it possible to end every child, and to see that none is left.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			b.process = cmd
		}),
	}
	for name, value := range b.options.flags() {
		allocator = append(allocator, chromedp.Flag(name, value))
	}
	base, cancelBase := chromedp.NewExecAllocator(context.Background(), allocator...)
	// Protocol messages newer than the client library are no failure of the test.
	ctx, cancel := chromedp.NewContext(base, chromedp.WithErrorf(func(string, ...any) {}))
	b.ctx, b.cancel = ctx, func() { cancel(); cancelBase() }
	if err := chromedp.Run(ctx); err != nil {
		return fmt.Errorf("%s does not start: %w", path, err)
	}
	return nil
}

// end ends every process of the browser at once and removes its profile. A profile that is thrown away needs no orderly
// end, which takes seconds; SIGKILL also reaches a suspended renderer. It tells of a process or a file that is left.
func (b *Browser) end() (err error) {
	group := 0
	if b.process != nil && b.process.Process != nil {
		group = -b.process.Process.Pid
		_ = syscall.Kill(group, syscall.SIGKILL)
	}
	if b.cancel != nil {
		b.cancel()
	}
	if group != 0 && !gone(group, 5*time.Second) {
		err = fmt.Errorf("processes of group %d are left", -group)
	}
	return errors.Join(err, os.RemoveAll(b.profile))
}

// Find returns the path of the Chromium (or Chrome) that Start runs, or "" if there is none. HOLDFAST_CHROMIUM
// overrides the search.
func Find() string {
	return find("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
}

// FindShell returns the path of the headless shell that Start runs for [Options.Shell], or else what Find does.
func FindShell() string {
	// Debian's command is a script that waits for this program, which would outlive a test that is killed.
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

// Tabs returns the tabs that are open, oldest first, without the blank one that covers hidden tabs.
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

// dead reports whether what is left of a group has ended and only waits for its parent to notice, which an init
// process may take a second for. Where there is no /proc, it cannot be told.
func dead(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // gone meanwhile
		}
		// "pid (name) state parent group …"; the name may hold anything.
		fields := strings.Fields(string(line[strings.LastIndexByte(string(line), ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(-group) && fields[0] != "Z" && fields[0] != "X" {
			return false
		}
	}
	return len(files) > 0
}
