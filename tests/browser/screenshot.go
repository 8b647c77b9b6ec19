package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// Screenshot writes the tab's view as a PNG file, in a window of this size in CSS pixels, with one image pixel each.
// It creates the directory if needed. dark selects the preferred colour scheme. The tab comes to the front and gets
// its former size and scheme back afterwards.
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

// Resize gives the page a viewport of this size in CSS pixels, as a phone has, until the next Screenshot.
func (tab *Tab) Resize(width, height int) {
	tab.t.Helper()
	tab.must("resize", tab.do(func(ctx context.Context) error {
		return emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, false).Do(ctx)
	}))
	tab.WaitFor(fmt.Sprintf("innerWidth === %d", width), Limit)
}

// Scheme sets the preferred colour scheme, "light" or "dark", until the next Screenshot. "" means the browser's
// default.
func (tab *Tab) Scheme(scheme string) {
	tab.t.Helper()
	tab.must("scheme", tab.do(func(ctx context.Context) error {
		if scheme == "" {
			return emulation.SetEmulatedMedia().Do(ctx)
		}
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}).Do(ctx)
	}))
}
