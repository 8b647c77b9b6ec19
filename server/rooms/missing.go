package rooms

import (
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// complete reports whether presence has read all kinds of keys.
func (p *presence) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.read) == len(p.kinds())
}

// dead returns the other instances that have shown no sign of life for at least limit.
func (p *presence) dead(now time.Time, limit time.Duration) (list []deadPeer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, i := range p.peers {
		p.looked++
		if id == p.own || now.Sub(i.since) < limit {
			continue
		}
		d := deadPeer{id: id, sign: i.sign, since: i.since}
		for token, revision := range i.sockets {
			p.looked++
			d.sockets = append(d.sockets, kv.Entry{Key: socketPrefix + token, Modified: revision})
		}
		list = append(list, d)
	}
	return list
}

// alive records that an instance lives although the watch has not reported it.
func (p *presence) alive(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.peers[id]; i != nil {
		i.since = now
	}
}

// restart counts every instance as alive and every orphan as new.
func (p *presence) restart(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.peers {
		i.since = now
	}
	for token := range p.orphans {
		p.orphans[token] = now
	}
}

// orphaned records that the sockets of an instance have been gone since a past moment.
func (p *presence) orphaned(id string, sockets []kv.Entry, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range sockets {
		token := e.Key[len(socketPrefix):]
		at := p.sockets[token]
		if _, member := p.members[token]; member && (at == nil || at.id == id) {
			p.orphans[token] = since
		}
	}
}

// ownStrays returns the registrations of this instance that have no open socket here.
func (p *presence) ownStrays() (list []kv.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token := range p.strays {
		p.looked++
		i := p.sockets[token]
		if i == nil || i.id != p.own || p.connected(token) {
			delete(p.strays, token)
			continue
		}
		list = append(list, kv.Entry{Key: socketPrefix + token, Modified: i.sockets[token]})
	}
	return list
}

// orphansSince returns the participants that have had no socket since limit or longer.
func (p *presence) orphansSince(limit time.Time) (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token, since := range p.orphans {
		p.looked++
		if !since.After(limit) {
			list = append(list, token)
		}
	}
	return list
}

// wait restarts the grace period of an orphan.
func (p *presence) wait(token string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.orphans[token]; known {
		p.orphans[token] = now
	}
}
