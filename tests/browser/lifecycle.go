package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// Hide puts a blank tab in front, so that document.visibilityState is "hidden" in this and every other tab of the
// browser. It returns when the page has noticed.
func (tab *Tab) Hide() {
	tab.t.Helper()
	tab.must("hide", tab.browser.cover())
	tab.WaitFor("document.visibilityState === 'hidden'", Limit)
}

// Show brings the tab to the front, which hides every other tab. It returns when the page has noticed.
func (tab *Tab) Show() {
	tab.t.Helper()
	tab.must("show", tab.browser.do(func(ctx context.Context) error { return target.ActivateTarget(tab.id).Do(ctx) }))
	tab.WaitFor("document.visibilityState === 'visible'", Limit)
}

// Freeze hides the tab and freezes it as the browser does to save energy: the page gets "freeze", then its tasks
// stop. Eval still works in a frozen tab if the promises that it awaits need no task of the page.
func (tab *Tab) Freeze() {
	tab.t.Helper()
	tab.Hide()
	tab.must("freeze", tab.lifecycle(page.SetWebLifecycleStateStateFrozen))
}

// Resume unfreezes the tab. The page gets "resume" and stays hidden.
func (tab *Tab) Resume() {
	tab.t.Helper()
	tab.must("resume", tab.lifecycle(page.SetWebLifecycleStateStateActive))
}

func (tab *Tab) lifecycle(state page.SetWebLifecycleStateState) error {
	return tab.do(func(ctx context.Context) error { return page.SetWebLifecycleState(state).Do(ctx) })
}

// Suspend stops the tab's renderer process with its page and workers, as if only this process slept. Nothing in it
// runs until Continue, and no call on the tab is answered. Suspend returns when every thread has stopped. On a busy
// machine that takes some milliseconds after the signal, in which the page could still answer others.
func (tab *Tab) Suspend() {
	tab.t.Helper()
	pid, err := tab.Renderer()
	tab.must("suspend", err)
	for _, other := range tab.browser.Tabs() { // a renderer cannot be found once this process has stopped
		if _, err := other.Renderer(); err != nil && !over(err) {
			tab.must("suspend", err)
		}
	}
	tab.setSuspended(true)
	tab.must("suspend", syscall.Kill(pid, syscall.SIGSTOP))
	tab.must("suspend", standsStill(pid))
}

// standsStill returns when no thread of the process runs any more.
func standsStill(pid int) error {
	for end := time.Now().Add(Limit); ; time.Sleep(time.Millisecond) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 {
			return fmt.Errorf("process %d is gone", pid)
		}
		if !slices.ContainsFunc(threads, runs) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("process %d still runs", pid)
		}
	}
}

// runs reports whether the thread with this /proc/…/stat file may still run.
func runs(stat string) bool {
	text, err := os.ReadFile(stat)
	if err != nil {
		return false // it has ended
	}
	state := text[bytes.LastIndexByte(text, ')')+2] // after the name
	return !strings.ContainsRune("TtZX", rune(state))
}

// Continue lets a suspended renderer run again.
func (tab *Tab) Continue() {
	tab.t.Helper()
	pid, err := tab.Renderer()
	tab.must("continue", err)
	tab.must("continue", syscall.Kill(pid, syscall.SIGCONT))
	tab.setSuspended(false)
}

func (tab *Tab) setSuspended(suspended bool) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.suspended = suspended
}

// Clear removes all storage of the URL's site, as "Clear site data" in the developer tools does.
func (tab *Tab) Clear(url string) {
	tab.t.Helper()
	tab.must("clear the storage", tab.do(func(ctx context.Context) error { return storage.ClearDataForOrigin(url, "all").Do(ctx) }))
}

// Quota limits the storage of the URL's origin to this number of bytes. 0 removes the limit.
func (tab *Tab) Quota(url string, bytes float64) {
	tab.t.Helper()
	tab.must("quota", tab.do(func(ctx context.Context) error {
		return storage.OverrideQuotaForOrigin(url).WithQuotaSize(bytes).Do(ctx)
	}))
}

// Crash kills the tab's renderer process. No handler of the page or its workers runs. The tab stays open and shows
// the browser's crash page, until Reload, Navigate or Close. Crash returns when the browser has noticed.
func (tab *Tab) Crash() {
	tab.t.Helper()
	pid, err := tab.Renderer()
	tab.must("crash", err)
	tab.mu.Lock()
	crashed := tab.crashed
	tab.mu.Unlock()
	tab.must("crash", syscall.Kill(pid, syscall.SIGKILL))
	select {
	case <-crashed:
	case <-time.After(Limit):
		tab.t.Fatalf("browser: crash: process %d was killed, but the tab did not crash", pid)
	}
}

// Crashed reports whether the tab's renderer process has ended since the last navigation, through Crash or by itself.
func (tab *Tab) Crashed() bool {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return wait.Closed(tab.crashed)
}

// Crashes returns how each crashed renderer of the tab ended, with its status and code. The last one may be added a
// little after Crashed.
func (tab *Tab) Crashes() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(tab.crashes)
}

// Renderer returns the process id of the tab's renderer, which no other tab shares. While another tab is suspended,
// Renderer fails for a tab that was opened, reloaded or navigated since.
func (tab *Tab) Renderer() (int, error) {
	tab.mu.Lock()
	pid := tab.pid
	tab.mu.Unlock()
	if pid != 0 {
		return pid, nil
	}
	for _, other := range tab.browser.Tabs() {
		other.mu.Lock()
		suspended := other.suspended
		other.mu.Unlock()
		if suspended {
			return 0, errors.New("renderer: unknown while another tab is suspended")
		}
	}
	pid, err := tab.browser.trace(tab)
	if err != nil {
		return 0, fmt.Errorf("renderer: %w", err)
	}
	for _, other := range tab.browser.Tabs() {
		other.mu.Lock()
		shared := other != tab && other.pid == pid
		other.mu.Unlock()
		if shared {
			return 0, fmt.Errorf("renderer: process %d is shared by two tabs", pid)
		}
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.pid = pid
	return pid, nil
}
