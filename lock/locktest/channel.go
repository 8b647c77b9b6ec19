package locktest

import (
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/lock"
)

// Air carries messages between the channels of one project in memory.
type Air struct {
	mu       sync.Mutex
	channels map[*Channel]map[int]func(lock.Message)
	last     int
}

// NewAir returns silent air.
func NewAir() *Air { return &Air{channels: make(map[*Channel]map[int]func(lock.Message))} }

// Join returns the channel of one owner.
func (a *Air) Join() *Channel { return &Channel{air: a} }

// Channel is the fake [lock.Channel]. Set Deaf before its first use for an owner that is frozen: it receives nothing.
type Channel struct {
	air  *Air
	Deaf bool
}

// Post calls every listener of the other channels before it returns.
func (c *Channel) Post(m lock.Message) error {
	var handlers []func(lock.Message)
	c.air.mu.Lock()
	for other, listeners := range c.air.channels {
		if other != c && !other.Deaf {
			handlers = append(handlers, slices.Collect(maps.Values(listeners))...)
		}
	}
	c.air.mu.Unlock()
	for _, handle := range handlers {
		handle(m)
	}
	return nil
}

// Listen implements [lock.Channel].
func (c *Channel) Listen(handle func(lock.Message)) (stop func(), err error) {
	c.air.mu.Lock()
	defer c.air.mu.Unlock()
	if c.air.channels[c] == nil {
		c.air.channels[c] = make(map[int]func(lock.Message))
	}
	c.air.last++
	id := c.air.last
	c.air.channels[c][id] = handle
	return func() {
		c.air.mu.Lock()
		defer c.air.mu.Unlock()
		delete(c.air.channels[c], id)
	}, nil
}
