package locks

import "strings"

// place is a node of the tree with what is there, by key.
type place struct {
	below   map[string]*place // by encoded component
	claims  map[string]*held
	tickets map[string]*ticket
}

var nowhere = &place{} // has nothing, and nothing is put there

func newPlace() *place {
	return &place{map[string]*place{}, map[string]*held{}, map[string]*ticket{}}
}

// components splits a key under prefix into its encoded components; the mark at its end is left out.
func components(key, prefix string) []string {
	parts := strings.Split(strings.TrimPrefix(key, prefix), "/")
	return parts[:len(parts)-1]
}

// reach returns the place of a key and makes it if need be.
func (p *place) reach(key, prefix string) *place {
	for _, component := range components(key, prefix) {
		next := p.below[component]
		if next == nil {
			next = newPlace()
			p.below[component] = next
		}
		p = next
	}
	return p
}

// find returns the place of a key, which may be nowhere.
func (p *place) find(key, prefix string) *place {
	for _, component := range components(key, prefix) {
		next, ok := p.below[component]
		if !ok {
			return nowhere
		}
		p = next
	}
	return p
}

func (p *place) at(key, prefix string) map[string]*held { return p.find(key, prefix).claims }

// remove takes a key out, and the places that are empty then.
func (p *place) remove(key, prefix string) {
	line := []*place{p}
	parts := components(key, prefix)
	for _, component := range parts {
		next, ok := line[len(line)-1].below[component]
		if !ok {
			return
		}
		line = append(line, next)
	}
	last := line[len(line)-1]
	delete(last.claims, key)
	delete(last.tickets, key)
	for i := len(parts); i > 0 && line[i].empty(); i-- {
		delete(line[i-1].below, parts[i-1])
	}
}

func (p *place) empty() bool { return len(p.below)+len(p.claims)+len(p.tickets) == 0 }

// each calls f for this place and every one below it.
func (p *place) each(f func(*place)) {
	f(p)
	for _, next := range p.below {
		next.each(f)
	}
}

// visit calls f for the places where something can stand against a lock on the path: those above it, it itself, and
// everything below it.
func (p *place) visit(path Path, above, at, below func(*place)) {
	parts := components(node("", path), "")
	for i, component := range parts {
		next, ok := p.below[component]
		if !ok {
			return
		}
		p = next
		if i < len(parts)-1 {
			above(p)
		}
	}
	at(p)
	for _, next := range p.below {
		next.each(below)
	}
}
