package simulation

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// inbox delivers messages to a tab one after the other. A frozen tab gets them when it resumes.
type inbox struct {
	tab        *tab
	deliveries chan func()
}

const maxDeliveries = 1 << 14

func newInbox(t *tab) *inbox {
	i := &inbox{tab: t, deliveries: make(chan func(), maxDeliveries)}
	go i.deliver()
	return i
}

// put posts a message to the tab. It never blocks.
func (i *inbox) put(deliver func()) {
	select {
	case i.deliveries <- deliver:
	default:
		i.tab.w.found("simulation", "the inbox of %s is full", i.tab.name)
	}
}

func (i *inbox) deliver() {
	for {
		select {
		case deliver := <-i.deliveries:
			time.Sleep(i.tab.dice.between(5*time.Microsecond, 500*time.Microsecond))
			if i.tab.awake() != nil {
				return
			}
			deliver()
		case <-i.tab.dead:
			return
		}
	}
}

// broadcast carries messages of one kind between the tabs of an origin, like a BroadcastChannel: each tab gets another
// tab's messages in order.
type broadcast[M any] struct {
	mu        sync.Mutex
	listeners map[*tab]map[int]func(M)
	last      int
}

func newBroadcast[M any]() *broadcast[M] {
	return &broadcast[M]{listeners: make(map[*tab]map[int]func(M))}
}

// channel is a tab's connection to the others: the [lock.Channel] and the [autosave.Channel].
type channel[M any] struct {
	broadcast *broadcast[M]
	tab       *tab
}

// Post sends a message to all other tabs of the origin.
func (c *channel[M]) Post(m M) error {
	if err := c.tab.awake(); err != nil {
		return err
	}
	for _, other := range c.tab.at.others(c.tab) {
		other.inbox.put(func() { c.broadcast.tell(other, m) })
	}
	return nil
}

// Listen calls handle with each message from others until stop is called.
func (c *channel[M]) Listen(handle func(M)) (stop func(), err error) {
	a := c.broadcast
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners[c.tab] == nil {
		a.listeners[c.tab] = make(map[int]func(M))
	}
	a.last++
	id := a.last
	a.listeners[c.tab][id] = handle
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listeners[c.tab], id)
	}, nil
}

func (a *broadcast[M]) tell(t *tab, m M) {
	a.mu.Lock()
	ids := slices.Sorted(maps.Keys(a.listeners[t]))
	var told []func(M)
	for _, id := range ids {
		told = append(told, a.listeners[t][id])
	}
	a.mu.Unlock()
	for _, handle := range told {
		handle(m)
	}
}
