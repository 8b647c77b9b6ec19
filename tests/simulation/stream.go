package simulation

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/tests/remotehttp"
)

const (
	// noticesKept is how many events a browser keeps for a tab that is busy or frozen. More wait on the server.
	noticesKept = 64
	// connectLimit is how long a browser tries to connect.
	connectLimit = 30 * time.Second
)

// Listen implements [remote.Server].
func (s *wire) Listen(ctx context.Context, r remote.Request, handle func(remote.Notice)) error {
	if err := s.tab.step(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	notices := make(chan remote.Notice, noticesKept)
	s.b.traffic.Go(func() { stop(s.b.stream(ctx, r.Path, notices)) })
	for {
		select {
		case n := <-notices:
			if err := s.tab.step(); err != nil {
				return err
			}
			s.tab.w.count("notices")
			handle(n)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.tab.dead:
			return errDead
		}
	}
}

// stream is a connection on which an instance sends the events of a document, in order, until the connection breaks or
// ctx ends.
func (b *browser) stream(ctx context.Context, path string, notices chan<- remote.Notice) error {
	in, err := b.connect(ctx)
	if err != nil {
		return err
	}
	target, err := url.Parse(path)
	if err != nil {
		return err
	}
	after, err := strconv.ParseInt(target.Query().Get("after"), 10, 64)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-in.dead:
			stop(errBroken)
		case <-ctx.Done():
		}
	}()
	document := strings.Split(target.Path, "/")[3]
	atOnce := func() (func(), error) { return func() {}, nil }
	return in.hub.Stream(ctx, document, after, atOnce, func(text []byte) error { return b.carry(ctx, text, notices) })
}

// connect opens a connection to an instance.
func (b *browser) connect(ctx context.Context) (*instance, error) {
	long, lost := b.leg("GET", b.network(), true)
	if lost {
		long = connectLimit
	}
	if err := wait.For(ctx, long); err != nil {
		return nil, err
	}
	in := b.service.any(b.dice)
	if lost || in == nil {
		return nil, errRefused
	}
	return in, nil
}

// carry takes an event to the browser. An event that is lost breaks the connection. Half of the times the browser does not
// notice, and the connection stays silent.
func (b *browser) carry(ctx context.Context, text []byte, notices chan<- remote.Notice) error {
	long, lost := b.leg("GET", b.network(), false)
	if err := wait.For(ctx, long); err != nil {
		return err
	}
	if lost && b.dice.chance(0.5) {
		return errBroken
	}
	if lost {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	n, err := remotehttp.ReadNotice(text)
	if err != nil {
		return err
	}
	select {
	case notices <- n:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
