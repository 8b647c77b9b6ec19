package browser

import (
	"context"

	"github.com/chromedp/cdproto/storage"
)

// Wipe removes all storage of the URL's origin, as "clear site data" in the developer tools does.
func (tab *Tab) Wipe(url string) {
	tab.t.Helper()
	tab.must("wipe", tab.do(func(ctx context.Context) error { return storage.ClearDataForOrigin(url, "all").Do(ctx) }))
}
