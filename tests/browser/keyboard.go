package browser

import (
	"context"
	"strings"

	"github.com/chromedp/cdproto/input"
)

// Type brings the tab to the front and enters text at its focus, as an input method does.
func (tab *Tab) Type(text string) {
	tab.t.Helper()
	tab.Show()
	tab.must("type", tab.do(func(ctx context.Context) error { return input.InsertText(text).Do(ctx) }))
}

// Press brings the tab to the front and presses and releases a key there. It takes the key's name, such as "Enter" or
// "ArrowDown", or "Control+" and a letter.
func (tab *Tab) Press(key string) {
	tab.t.Helper()
	tab.Show()
	var modifiers input.Modifier
	key, control := strings.CutPrefix(key, "Control+")
	place := key
	if control {
		modifiers, place = input.ModifierCtrl, "Key"+strings.ToUpper(key)
	}
	code, known := map[string]int64{"Enter": 13, "ArrowUp": 38, "ArrowDown": 40, "Tab": 9, "Escape": 27, "Delete": 46, "z": 90}[key]
	if !known {
		tab.t.Fatalf("no code is known for the key %s", key)
	}
	press := func(kind input.KeyType, text string) func(context.Context) error {
		return func(ctx context.Context) error {
			return input.DispatchKeyEvent(kind).WithModifiers(modifiers).WithKey(key).WithCode(place).WithWindowsVirtualKeyCode(code).WithText(text).Do(ctx)
		}
	}
	text := map[string]string{"Enter": "\r"}[key]
	tab.must("press "+key, tab.do(press(input.KeyDown, text)))
	tab.must("release "+key, tab.do(press(input.KeyUp, "")))
}
