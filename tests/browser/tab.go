package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

// Errors that end a call on a tab early.
var (
	errLimit   = within(Limit)
	errCrashed = errors.New("the tab has crashed")
	errClosed  = errors.New("the tab is closed")
)

// ErrNoAnswer is matched by the error of a call that takes longer than its limit.
var ErrNoAnswer = errors.New("no answer")

func within(limit time.Duration) error { return fmt.Errorf("%w within %v", ErrNoAnswer, limit) }

// A Tab is one page of a browser, in the same window and profile as all others. A method without an error result
// fails the test at once, so the test must call it on its own goroutine, as t.Fatal demands. The end of the test
// closes an open tab.
type Tab struct {
	t       testing.TB
	browser *Browser
	ctx     context.Context
	id      target.ID
	home    string // the address at which it was opened
	closed  chan struct{}

	mu        sync.Mutex
	crashed   chan struct{} // closed by a crash, replaced by the next navigation
	crashes   []string      // how each crash ended the renderer, according to Chromium
	pid       int           // the renderer's process, 0 if unknown
	workers   map[target.SessionID]*worker
	suspended bool
	spared    bool // the tab returns to home, so its console messages do not matter
	console   []Message
}

// Open opens a tab in front of the others, which it hides, and returns when the page has fired "load". The tab may be
// a spare one.
func (b *Browser) Open(t testing.TB, url string) *Tab {
	t.Helper()
	if tab := b.takeSpare(url); tab != nil {
		tab.t = t
		tab.Show()
		return tab
	}
	tab := b.openNew(t, url)
	tab.Show()
	tab.Navigate(url)
	return tab
}

func (b *Browser) openNew(t testing.TB, url string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	tab := &Tab{t: t, browser: b, home: url, ctx: ctx, closed: make(chan struct{}), crashed: make(chan struct{}),
		workers: map[target.SessionID]*worker{}}
	chromedp.ListenTarget(ctx, tab.listen)
	if err := chromedp.Run(ctx); err != nil {
		cancel()
		t.Fatalf("browser: open %s: %v", url, err)
	}
	tab.id = chromedp.FromContext(ctx).Target.TargetID
	chromedp.ListenBrowser(ctx, func(event any) {
		switch event := event.(type) {
		case *target.EventTargetDestroyed:
			if event.TargetID == tab.id {
				close(tab.closed)
			}
		case *target.EventTargetCrashed:
			if event.TargetID == tab.id {
				tab.mu.Lock()
				tab.crashes = append(tab.crashes, fmt.Sprintf("%s %d", event.Status, event.ErrorCode))
				tab.mu.Unlock()
			}
		}
	})
	b.mu.Lock()
	b.tabs = append(b.tabs, tab)
	b.mu.Unlock()
	return tab
}

// Spare navigates the tab back to home and makes it available to a later Open of the same address. That costs half of
// opening a new tab and its renderer. Do not spare a tab after a call such as Before that changes more than its page.
func (tab *Tab) Spare() {
	tab.t.Helper()
	b := tab.browser
	b.mu.Lock()
	open := slices.Contains(b.tabs, tab) && !slices.Contains(b.spare, tab)
	b.mu.Unlock()
	if !open || tab.t.Failed() {
		return
	}
	tab.mu.Lock()
	tab.spared = true
	tab.mu.Unlock()
	tab.Navigate(tab.home)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spare = append(b.spare, tab)
}

func (b *Browser) takeSpare(url string) *Tab {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.spare, func(tab *Tab) bool { return tab.home == url })
	if i < 0 {
		return nil
	}
	tab := b.spare[i]
	b.spare = slices.Delete(b.spare, i, i+1)
	return tab
}

// listen records the tab's events. It must not block, because it runs on the only goroutine that reads from Chromium.
func (tab *Tab) listen(event any) {
	switch event := event.(type) {
	case *inspector.EventTargetCrashed:
		tab.mu.Lock()
		defer tab.mu.Unlock()
		if !wait.Closed(tab.crashed) {
			close(tab.crashed)
		}
	case *page.EventJavascriptDialogOpening:
		go func() {
			_ = tab.do(func(ctx context.Context) error { return page.HandleJavaScriptDialog(true).Do(ctx) })
		}()
	case *page.EventFrameNavigated:
		if event.Frame.ParentID == "" {
			tab.mu.Lock()
			tab.pid = 0 // another document may have another process
			if tab.spared {
				tab.spared, tab.console, tab.crashes = false, nil, nil
			}
			tab.mu.Unlock()
		}
	case *target.EventAttachedToTarget:
		tab.workerStarted(event)
	case *target.EventDetachedFromTarget:
		tab.workerEnded(event.SessionID)
	default:
		tab.record("page", event)
	}
}

// do runs an action on the tab. Limit and the life of the renderer bound it.
func (tab *Tab) do(action func(context.Context) error) error { return tab.doWithin(Limit, action) }

func (tab *Tab) doWithin(limit time.Duration, action func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(tab.ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, limit, within(limit))
	defer stop()
	tab.mu.Lock()
	crashed := tab.crashed
	tab.mu.Unlock()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-crashed:
			cancel(errCrashed)
		case <-tab.closed:
			cancel(errClosed)
		case <-done:
		}
	}()
	err := action(cdp.WithExecutor(ctx, chromedp.FromContext(tab.ctx).Target))
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// must fails the test for an error.
func (tab *Tab) must(what string, err error) {
	tab.t.Helper()
	if err != nil {
		tab.t.Fatalf("browser: %s: %v", what, err)
	}
}

// Navigate loads another page in the tab and returns when that page has fired "load". It also revives a crashed tab.
func (tab *Tab) Navigate(url string) {
	tab.t.Helper()
	tab.must("navigate to "+url, tab.load(chromedp.Navigate(url)))
}

// Before runs a script in every document that the tab loads from now on, before the document's own scripts.
func (tab *Tab) Before(js string) {
	tab.t.Helper()
	tab.must("add a script", tab.do(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(js).Do(ctx)
		return err
	}))
}

// BypassCSP lets no Content Security Policy restrict the documents that the tab loads from now on.
func (tab *Tab) BypassCSP() {
	tab.t.Helper()
	tab.must("bypass the policy", tab.do(func(ctx context.Context) error { return page.SetBypassCSP(true).Do(ctx) }))
}

// Reload reloads the page as a user does, and returns when the page has fired "load". It also revives a crashed tab.
func (tab *Tab) Reload() {
	tab.t.Helper()
	tab.must("reload", tab.load(chromedp.Reload()))
}

// load runs an action that loads another document.
func (tab *Tab) load(action chromedp.Action) error {
	tab.mu.Lock()
	crashed := wait.Closed(tab.crashed)
	if crashed {
		tab.crashed = make(chan struct{})
	}
	tab.pid = 0
	tab.mu.Unlock()
	if err := tab.do(action.Do); err != nil || !crashed {
		return err
	}
	// If the tab was frozen as it crashed, Chromium would freeze the next page that comes back from the back/forward cache.
	return tab.lifecycle(page.SetWebLifecycleStateStateActive)
}

// Close closes the tab like a click on its close button without a prompt: the page receives pagehide but not
// beforeunload. Close returns when Chromium has removed the tab. The tab's resources may be freed a little later.
func (tab *Tab) Close() {
	tab.t.Helper()
	tab.must("close", tab.close())
}

func (tab *Tab) close() error {
	tab.browser.forget(tab)
	if err := tab.browser.do(func(ctx context.Context) error { return target.CloseTarget(tab.id).Do(ctx) }); err != nil {
		return err
	}
	select {
	case <-tab.closed:
		return nil
	case <-time.After(Limit):
		return errLimit
	}
}

func (b *Browser) forget(tab *Tab) {
	b.mu.Lock()
	defer b.mu.Unlock()
	same := func(other *Tab) bool { return other == tab }
	b.tabs, b.spare = slices.DeleteFunc(b.tabs, same), slices.DeleteFunc(b.spare, same)
}

// release frees the objects that Eval kept alive.
func release(ctx context.Context) { _ = runtime.ReleaseObjectGroup(group).Do(ctx) }
