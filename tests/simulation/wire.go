package simulation

import (
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast/remote"
)

// wire is a tab's [remote.Server].
type wire struct {
	run *run
	tab *tab
	b   *browser
}

// Send implements [remote.Server].
func (s *wire) Send(ctx context.Context, r remote.Request) (remote.Reply, error) {
	if err := s.tab.step(); err != nil {
		return remote.Reply{}, err
	}
	if ctx.Err() != nil {
		return remote.Reply{}, context.Cause(ctx)
	}
	if r.Method == http.MethodDelete && r.Token != 0 {
		s.run.checker.passed(s.tab, r.Token)
	}
	x := s.b.send(s.tab.at.url, r)
	defer close(x.given)
	select {
	case a := <-x.reply:
		if err := s.tab.step(); err != nil {
			return remote.Reply{}, err
		}
		if ctx.Err() != nil {
			return remote.Reply{}, context.Cause(ctx)
		}
		return a.reply, a.err
	case <-ctx.Done():
		if err := s.tab.step(); err != nil {
			return remote.Reply{}, err
		}
		return remote.Reply{}, context.Cause(ctx)
	case <-s.tab.dead:
		return remote.Reply{}, errDead
	}
}
