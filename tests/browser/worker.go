package browser

import (
	"context"
	"errors"
	"fmt"

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

func (tab *Tab) workerEval(js string, out any) error {
	w, err := tab.onlyWorker()
	if err != nil {
		return err
	}
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

// onWorker runs an action on a worker as soon as the worker is reachable.
func (tab *Tab) onWorker(w *worker, action func(context.Context) error) error {
	return tab.do(func(ctx context.Context) error {
		select {
		case <-w.attached:
		case <-w.ctx.Done():
			return errors.New("the worker has ended")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return action(cdp.WithExecutor(ctx, chromedp.FromContext(w.ctx).Target))
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
