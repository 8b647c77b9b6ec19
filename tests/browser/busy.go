package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/performance"
)

// Busy returns the processor time that the page's main thread has used for its tasks since the page began. Other
// processes do not count, however busy the machine is.
func (tab *Tab) Busy() (used time.Duration) {
	tab.t.Helper()
	tab.must("measure the main thread", tab.do(func(ctx context.Context) error {
		if err := performance.Enable().WithTimeDomain(performance.EnableTimeDomainThreadTicks).Do(ctx); err != nil {
			return err
		}
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			if m.Name == "TaskDuration" {
				used = time.Duration(m.Value * float64(time.Second))
			}
		}
		return err
	}))
	return used
}
