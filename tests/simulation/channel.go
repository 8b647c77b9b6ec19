package simulation

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// inbox delivers messages to a tab one after the other. A frozen tab gets them when it resumes.
type inbox struct {
	tab     *tab
	letters chan func()
}

const maxLetters = 1 << 14

func newInbox(t *tab) *inbox {
	i := &inbox{tab: t, letters: make(chan func(), maxLetters)}
	go i.deliver()
	return i
}

// put posts a message to the tab. It never blocks.
func (i *inbox) put(letter func()) {
	select {
	case i.letters <- letter:
	default:
		i.tab.w.found("simulation", "the inbox of %s is full", i.tab.name)
	}
}

func (i *inbox) deliver() {
	for {
		select {
		case letter := <-i.letters:
			time.Sleep(i.tab.dice.between(5*time.Microsecond, 500*time.Microsecond))
			if i.tab.awake() != nil {
				return
			}
			letter()
		case <-i.tab.dead:
			return
		}
	}
}

// air carries messages of one kind between the tabs of an origin, like a BroadcastChannel: each tab gets another
// tab's messages in order.
type air[M any] struct {
	mu   sync.Mutex
	ears map[*tab]map[int]func(M)
	last int
}

func newAir[M any]() *air[M] { return &air[M]{ears: make(map[*tab]map[int]func(M))} }

// channel is a tab's connection to the others: the [lock.Channel] and the [autosave.Channel].
type channel[M any] struct {
	air *air[M]
	tab *tab
}

// Post sends a message to all other tabs of the origin.
func (c *channel[M]) Post(m M) error {
	if err := c.tab.awake(); err != nil {
		return err
	}
	for _, other := range c.tab.at.others(c.tab) {
		other.inbox.put(func() { c.air.tell(other, m) })
	}
	return nil
}

// Listen calls handle with each message from others until stop is called.
func (c *channel[M]) Listen(handle func(M)) (stop func(), err error) {
	a := c.air
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ears[c.tab] == nil {
		a.ears[c.tab] = make(map[int]func(M))
	}
	a.last++
	id := a.last
	a.ears[c.tab][id] = handle
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.ears[c.tab], id)
	}, nil
}

func (a *air[M]) tell(t *tab, m M) {
	a.mu.Lock()
	ids := slices.Sorted(maps.Keys(a.ears[t]))
	var told []func(M)
	for _, id := range ids {
		told = append(told, a.ears[t][id])
	}
	a.mu.Unlock()
	for _, handle := range told {
		handle(m)
	}
}
