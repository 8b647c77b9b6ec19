package autosavetest

import (
	"sync"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Air carries messages between the pages of one project in memory.
type Air struct {
	mu       sync.Mutex
	channels map[*Channel]func(autosave.Message)
}

// NewAir returns silent air.
func NewAir() *Air { return &Air{channels: make(map[*Channel]func(autosave.Message))} }

// Join returns the channel of one page.
func (a *Air) Join() *Channel { return &Channel{air: a} }

// Channel is the fake [autosave.Channel], for one listener.
type Channel struct {
	air  *Air
	deaf bool
}

// Deafen makes the page receive nothing, as a frozen page, until deaf is false again.
func (c *Channel) Deafen(deaf bool) {
	c.air.mu.Lock()
	defer c.air.mu.Unlock()
	c.deaf = deaf
}

// Post calls the listeners of the other channels before it returns.
func (c *Channel) Post(m autosave.Message) error {
	var handlers []func(autosave.Message)
	c.air.mu.Lock()
	for other, handle := range c.air.channels {
		if other != c && !other.deaf && !c.deaf {
			handlers = append(handlers, handle)
		}
	}
	c.air.mu.Unlock()
	for _, handle := range handlers {
		handle(m)
	}
	return nil
}

// Listen implements [autosave.Channel].
func (c *Channel) Listen(handle func(autosave.Message)) (stop func(), err error) {
	c.air.mu.Lock()
	defer c.air.mu.Unlock()
	c.air.channels[c] = handle
	return func() {
		c.air.mu.Lock()
		defer c.air.mu.Unlock()
		delete(c.air.channels, c)
	}, nil
}
