package locktest

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Network carries messages between the channels of one project in memory.
type Network struct {
	mu       sync.Mutex
	channels map[*Channel]map[int]func(lock.Message)
	last     int
}

// NewNetwork returns a network without channels.
func NewNetwork() *Network { return &Network{channels: make(map[*Channel]map[int]func(lock.Message))} }

// Join returns the channel of one owner.
func (n *Network) Join() *Channel { return &Channel{network: n} }

// JoinBusy returns the channel of an owner that receives nothing while it is busy.
func (n *Network) JoinBusy(busy *atomic.Bool) lock.Channel { return busyChannel{n.Join(), busy} }

type busyChannel struct {
	lock.Channel
	busy *atomic.Bool
}

func (b busyChannel) Listen(handle func(lock.Message)) (func(), error) {
	return b.Channel.Listen(func(m lock.Message) {
		if !b.busy.Load() {
			handle(m)
		}
	})
}

// Late returns the channel of an owner that receives each message late.
func Late(c lock.Channel, by time.Duration) lock.Channel { return lateChannel{c, by} }

type lateChannel struct {
	lock.Channel
	by time.Duration
}

func (l lateChannel) Listen(handle func(lock.Message)) (func(), error) {
	return l.Channel.Listen(func(m lock.Message) { time.AfterFunc(l.by, func() { handle(m) }) })
}

// Channel is the fake [lock.Channel]. Set Deaf before its first use for an owner that is frozen: it receives nothing.
type Channel struct {
	network *Network
	Deaf    bool
}

// Post calls every listener of the other channels before it returns.
func (c *Channel) Post(m lock.Message) error {
	var handlers []func(lock.Message)
	c.network.mu.Lock()
	for other, listeners := range c.network.channels {
		if other != c && !other.Deaf {
			handlers = append(handlers, slices.Collect(maps.Values(listeners))...)
		}
	}
	c.network.mu.Unlock()
	for _, handle := range handlers {
		handle(m)
	}
	return nil
}

// Listen implements [lock.Channel].
func (c *Channel) Listen(handle func(lock.Message)) (stop func(), err error) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.network.channels[c] == nil {
		c.network.channels[c] = make(map[int]func(lock.Message))
	}
	c.network.last++
	id := c.network.last
	c.network.channels[c][id] = handle
	return func() {
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		delete(c.network.channels[c], id)
	}, nil
}
