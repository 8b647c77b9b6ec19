package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// Screenshot writes what the tab shows in a window of that many CSS pixels, one image pixel each, to a PNG file,
// making its directory where needed. dark is the person's preferred colour scheme. The tab comes to the front and
// has its former size and scheme afterwards.
func (tab *Tab) Screenshot(path string, width, height int, dark bool) {
	tab.t.Helper()
	tab.Show()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	var image []byte
	tab.must("screenshot", tab.do(func(ctx context.Context) error {
		if err := emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, false).Do(ctx); err != nil {
			return err
		}
		if err := emulation.SetEmulatedMedia().WithFeatures(features).Do(ctx); err != nil {
			return err
		}
		var err error
		if image, err = page.CaptureScreenshot().Do(ctx); err != nil {
			return err
		}
		if err := emulation.ClearDeviceMetricsOverride().Do(ctx); err != nil {
			return err
		}
		return emulation.SetEmulatedMedia().Do(ctx)
	}))
	tab.must("screenshot", os.MkdirAll(filepath.Dir(path), 0o755))
	tab.must("screenshot", os.WriteFile(path, image, 0o644))
}

// Resize gives the page a viewport of that many CSS pixels, as a phone has, until the next Screenshot.
func (tab *Tab) Resize(width, height int) {
	tab.t.Helper()
	tab.must("resize", tab.do(func(ctx context.Context) error {
		return emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, false).Do(ctx)
	}))
	tab.WaitFor(fmt.Sprintf("innerWidth === %d", width), Limit)
}

// Scheme sets the person's preferred colour scheme, "light" or "dark", until the next Screenshot; "" is the browser's own.
func (tab *Tab) Scheme(scheme string) {
	tab.t.Helper()
	tab.must("scheme", tab.do(func(ctx context.Context) error {
		if scheme == "" {
			return emulation.SetEmulatedMedia().Do(ctx)
		}
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}).Do(ctx)
	}))
}
