package autosavetest

import (
	"sync"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Network carries messages between the pages of one project in memory.
type Network struct {
	mu       sync.Mutex
	channels map[*Channel]func(autosave.Message)
}

// NewNetwork returns a network without channels.
func NewNetwork() *Network { return &Network{channels: make(map[*Channel]func(autosave.Message))} }

// Join returns the channel of one page.
func (n *Network) Join() *Channel { return &Channel{network: n} }

// Channel is the fake [autosave.Channel], for one listener.
type Channel struct {
	network *Network
	deaf    bool
}

// Deafen makes the page receive nothing, as a frozen page, until deaf is false again.
func (c *Channel) Deafen(deaf bool) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	c.deaf = deaf
}

// Post calls the listeners of the other channels before it returns.
func (c *Channel) Post(m autosave.Message) error {
	var handlers []func(autosave.Message)
	c.network.mu.Lock()
	for other, handle := range c.network.channels {
		if other != c && !other.deaf && !c.deaf {
			handlers = append(handlers, handle)
		}
	}
	c.network.mu.Unlock()
	for _, handle := range handlers {
		handle(m)
	}
	return nil
}

// Listen implements [autosave.Channel].
func (c *Channel) Listen(handle func(autosave.Message)) (stop func(), err error) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	c.network.channels[c] = handle
	return func() {
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		delete(c.network.channels, c)
	}, nil
}
