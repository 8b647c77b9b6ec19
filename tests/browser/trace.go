package browser

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// trace finds the process of a tab's main frame. The protocol shows it only in the first event of a trace, which
// lists the frames with their processes. No other tab may be suspended meanwhile, because a trace waits for all
// processes.
func (b *Browser) trace(tab *Tab) (int, error) {
	b.tracing.Lock()
	defer b.tracing.Unlock()
	found := 0
	done := make(chan struct{})
	err := tab.do(func(ctx context.Context) error {
		lctx, cancel := context.WithCancel(ctx)
		defer cancel()
		chromedp.ListenTarget(lctx, func(event any) {
			switch event := event.(type) {
			case *tracing.EventDataCollected:
				for _, raw := range event.Value {
					if pid := process(raw, string(tab.id)); pid != 0 {
						found = pid
					}
				}
			case *tracing.EventTracingComplete:
				close(done)
			}
		})
		config := &tracing.TraceConfig{IncludedCategories: []string{"disabled-by-default-devtools.timeline"},
			ExcludedCategories: []string{"*"}}
		if err := tracing.Start().WithTraceConfig(config).Do(ctx); err != nil {
			return err
		}
		if err := tracing.End().Do(ctx); err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return 0, err
	}
	if found == 0 {
		return 0, errors.New("the trace names no process for the tab")
	}
	return found, nil
}

// process returns the process of a frame if the trace event shows it, else 0.
func process(raw []byte, frame string) int {
	var event struct {
		Name string
		Args struct {
			Data struct {
				Frames []struct {
					Frame     string
					ProcessID int
				}
			}
		}
	}
	if json.Unmarshal(raw, &event) != nil || event.Name != "TracingStartedInBrowser" {
		return 0
	}
	for _, f := range event.Args.Data.Frames {
		if f.Frame == frame {
			return f.ProcessID
		}
	}
	return 0
}
