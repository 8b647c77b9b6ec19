package browser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// WorkerEval runs a script in the page's only dedicated worker and decodes the value of its last expression as JSON
// into out, which may be nil. It waits until the worker is reachable, not until the worker has loaded. It fails the
// test on an error, and if the page has no worker or several.
func (tab *Tab) WorkerEval(js string, out any) {
	tab.t.Helper()
	tab.must("eval in the worker", tab.workerEval(js, out))
}

// EndWorker runs a script, as WorkerEval does, that may end the worker before it answers.
func (tab *Tab) EndWorker(js string) {
	tab.t.Helper()
	if err := tab.workerEval(js, nil); !errors.Is(err, errWorkerEnded) {
		tab.must("end the worker", err)
	}
}

// EachWorkerEval runs a script in each dedicated worker that the page has now, and returns when all of them have run it or
// have ended.
func (tab *Tab) EachWorkerEval(js string) {
	tab.t.Helper()
	tab.mu.Lock()
	workers := slices.Collect(maps.Values(tab.workers))
	tab.mu.Unlock()
	for _, w := range workers {
		if err := tab.evalIn(w, js, nil); !errors.Is(err, errWorkerEnded) {
			tab.must("eval in each worker", err)
		}
	}
}

func (tab *Tab) workerEval(js string, out any) error {
	w, err := tab.onlyWorker()
	if err != nil {
		return err
	}
	return tab.evalIn(w, js, out)
}

func (tab *Tab) evalIn(w *worker, js string, out any) error {
	return tab.onWorker(w, func(ctx context.Context) error {
		value, thrown, err := runtime.Evaluate(js).WithReplMode(true).WithReturnByValue(true).Do(ctx)
		switch {
		case err != nil:
			return err
		case thrown != nil:
			return &JSError{Stack: describe(thrown)}
		case out == nil:
			return nil
		}
		return decode(value, out)
	})
}

var errWorkerEnded = errors.New("the worker has ended")

// onWorker runs an action on a worker as soon as the worker is reachable. Chromium does not answer for a worker that has ended.
func (tab *Tab) onWorker(w *worker, action func(context.Context) error) error {
	return tab.do(func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer context.AfterFunc(w.ctx, func() { cancel(errWorkerEnded) })()
		select {
		case <-w.attached:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		err := action(cdp.WithExecutor(ctx, chromedp.FromContext(w.ctx).Target))
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	})
}

func (tab *Tab) onlyWorker() (*worker, error) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if len(tab.workers) != 1 {
		return nil, fmt.Errorf("the page has %d workers", len(tab.workers))
	}
	for _, w := range tab.workers {
		return w, nil
	}
	panic("unreachable")
}
