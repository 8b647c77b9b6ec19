package browser

import (
	"context"

	"github.com/chromedp/cdproto/input"
)

// A Point is a place in the view, in CSS pixels from its upper left corner.
type Point struct{ X, Y float64 }

// Click brings the tab to the front and clicks with the left button, as often as times says.
func (tab *Tab) Click(at Point, times int) {
	tab.t.Helper()
	tab.Show()
	tab.mouse(input.MouseMoved, at, 0)
	for n := 1; n <= times; n++ {
		tab.mouse(input.MousePressed, at, n)
		tab.mouse(input.MouseReleased, at, n)
	}
}

// Drag brings the tab to the front, presses the left button at one place and releases it at another.
func (tab *Tab) Drag(from, to Point) {
	tab.t.Helper()
	tab.Show()
	tab.mouse(input.MouseMoved, from, 0)
	tab.mouse(input.MousePressed, from, 1)
	tab.mouse(input.MouseMoved, Point{(from.X + to.X) / 2, (from.Y + to.Y) / 2}, 1)
	tab.mouse(input.MouseMoved, to, 1)
	tab.mouse(input.MouseReleased, to, 1)
}

// mouse sends one event. The left button is down in a move that has a number of clicks.
func (tab *Tab) mouse(kind input.MouseType, at Point, clicks int) {
	tab.t.Helper()
	event := input.DispatchMouseEvent(kind, at.X, at.Y)
	if clicks > 0 {
		event = event.WithButton(input.Left).WithClickCount(int64(clicks))
		if kind != input.MouseReleased {
			event = event.WithButtons(1)
		}
	}
	tab.must("mouse", tab.do(func(ctx context.Context) error { return event.Do(ctx) }))
}
