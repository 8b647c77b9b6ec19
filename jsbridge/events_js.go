//go:build js && wasm

package jsbridge

import (
	"context"
	"errors"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/remote"
)

// noticesKept is how many notices may wait until Go has time for them. With more notices the connection ends, and the
// next one resumes.
const noticesKept = 64

var errConnectionEnded = errors.New("the connection for events has ended")

// Listen implements [remote.Server] over a WebSocket.
func (s *Server) Listen(ctx context.Context, r remote.Request, handle func(remote.Notice)) error {
	var scope Scope
	defer scope.Release()
	notices, ended := make(chan remote.Notice, noticesKept), make(chan struct{}, 1)
	end := func() {
		select {
		case ended <- struct{}{}:
		default:
		}
	}
	heard, err := scope.Func(func(args []safejs.Value) any {
		v := first(args)
		select {
		case notices <- remote.Notice{Type: Property(v, "type"), Revision: Number(v, "revision"), Token: Number(v, "token"),
			Ask: Property(v, "ask"), HolderName: Property(v, "holderName")}:
		default:
			end()
		}
		return nil
	})
	if err != nil {
		return err
	}
	over, err := scope.Func(func([]safejs.Value) any { end(); return nil })
	if err != nil {
		return err
	}
	socket, err := port.Call("listen", s.url+r.Path, r.Bearer, heard, over)
	if err != nil {
		return err
	}
	defer func() { _, _ = socket.Call("close") }()
	for {
		select {
		case n := <-notices:
			handle(n)
		case <-ended:
			return errConnectionEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
