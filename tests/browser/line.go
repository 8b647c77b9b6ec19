package browser

import (
	"context"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
)

// Line describes a connection and a processor.
type Line struct {
	Latency float64 // of a request, in milliseconds
	Bits    float64 // per second, in either direction; 0 for no limit
	Slower  float64 // factor for the page's main thread; 0 for none
}

// Fast3G is the line of a phone: 1.6 Mbit/s, 150 ms, and a processor that is four times slower.
var Fast3G = Line{Latency: 150, Bits: 1.6e6, Slower: 4}

// Over emulates the line for what the page loads from now on. Workers compute at full speed.
func (tab *Tab) Over(l Line) {
	tab.t.Helper()
	bytes := -1.0
	if l.Bits > 0 {
		bytes = l.Bits / 8
	}
	tab.must("emulate a line", tab.do(func(ctx context.Context) error {
		if err := network.Enable().Do(ctx); err != nil {
			return err
		}
		if err := network.OverrideNetworkState(false, l.Latency, bytes, bytes).Do(ctx); err != nil {
			return err
		}
		if _, err := network.EmulateNetworkConditionsByRule(false, []*network.Conditions{{URLPattern: "", Latency: l.Latency, DownloadThroughput: bytes, UploadThroughput: bytes}}).Do(ctx); err != nil {
			return err
		}
		return emulation.SetCPUThrottlingRate(max(1, l.Slower)).Do(ctx)
	}))
}
