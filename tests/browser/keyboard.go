package browser

import (
	"context"

	"github.com/chromedp/cdproto/input"
)

// Type brings the tab to the front and puts text where its focus is, as a person's input method does.
func (tab *Tab) Type(text string) {
	tab.t.Helper()
	tab.Show()
	tab.must("type", tab.do(func(ctx context.Context) error { return input.InsertText(text).Do(ctx) }))
}
