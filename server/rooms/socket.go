package rooms

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server/sockets"
)

// hardLimit is the message length at which the server cuts the connection instead of refusing the message.
const hardLimit = 1 << 20

// A socket may send this many messages per second, and this many in a burst.
const messagesPerSecond, messagesAtOnce = 100, 200

// socket is one client's connection.
type socket struct {
	rooms  *Rooms
	conn   *websocket.Conn
	token  string
	client Client
	out    *outbox

	feed    *feed // of the last room that it entered; only the reading goroutine sets it, under rooms.mu
	entered bool  // whether it has ever asked to enter a room; only the reading goroutine uses it
}

func newSocket(r *Rooms, conn *websocket.Conn, client Client) *socket {
	conn.SetReadLimit(hardLimit)
	return &socket{rooms: r, conn: conn, token: newToken(), client: client, out: newOutbox()}
}

func (s *socket) mayDo(room string, change bool) bool {
	return s.client.May == nil || s.client.May(room, change)
}

// keeps reports whether the socket may stay in a room: its client may see or change it.
func (s *socket) keeps(room string) bool { return s.mayDo(room, false) || s.mayDo(room, true) }

// expel closes the socket of a client that may no longer be in its room, and returns the reason.
func (s *socket) expel() error {
	_ = s.conn.Close(websocket.StatusPolicyViolation, errNotAllowed.message)
	return errNotAllowed
}

func (s *socket) participant(name string) participant {
	return participant{Token: s.token, Name: name, Session: s.client.Session}
}

// serve runs as long as the socket. It returns when everything that it started has ended.
func (s *socket) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { defer cancel(); s.write(ctx) })
	both.Go(func() { defer cancel(); s.ping(ctx) })
	s.read(ctx)
	cancel()
	_ = s.conn.CloseNow()
	both.Wait()
}

// read carries out one message after the other until the connection ends.
func (s *socket) read(ctx context.Context) {
	// The limiter slows the reading of a client that sends faster. That protects the shared store.
	pace := rate.NewLimiter(messagesPerSecond, messagesAtOnce)
	for s.mayReply(ctx) && pace.Wait(ctx) == nil {
		kind, reader, err := s.conn.Reader(ctx)
		if err != nil {
			return
		}
		data, err := s.receive(reader)
		if err != nil {
			return
		}
		switch {
		case kind != websocket.MessageText:
			s.tell(errBinary.encoded())
		case string(data) == "ping":
			s.tell([]byte("pong"))
		case !s.allowed(ctx):
			return
		default:
			s.handle(ctx, data)
		}
	}
}

// allowAgain is the pause after which a message is counted again that the client may not send yet.
const allowAgain = 200 * time.Millisecond

// allowed waits until the client may send a message: its sockets share a limit.
func (s *socket) allowed(ctx context.Context) bool {
	for s.client.Allow != nil && !s.client.Allow() {
		if wait.For(ctx, allowAgain) != nil {
			return false
		}
	}
	return true
}

// receive reads one message. It truncates a message that is longer than any valid one, but reads it to its end. A
// message that takes too long ends the connection.
func (s *socket) receive(reader io.Reader) ([]byte, error) {
	slow := time.AfterFunc(s.rooms.config.MessageLimit, func() { _ = s.conn.CloseNow() })
	defer slow.Stop()
	data, err := io.ReadAll(io.LimitReader(reader, maxMessage+1))
	if err == nil && len(data) > maxMessage {
		_, err = io.Copy(io.Discard, reader)
	}
	return data, err
}

// mayReply waits while too many replies to the client are unread.
func (s *socket) mayReply(ctx context.Context) bool {
	for s.out.full() {
		select {
		case <-s.out.space:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

func (s *socket) tell(data []byte) { s.out.add(outgoing{data: data}) }

// write writes the messages of the outbox until the connection ends.
func (s *socket) write(ctx context.Context) {
	for {
		message, ok := s.out.take()
		if !ok {
			select {
			case <-s.out.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if s.writeOne(ctx, message) != nil {
			return
		}
	}
}

// buffers are reused for messages made of states, up to maxCopied bytes. A copy of a larger one for each slow reader of a large room would
// take too much memory.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxCopied = 16 << 10

func (s *socket) writeOne(ctx context.Context, message outgoing) error {
	ctx, cancel := context.WithTimeout(ctx, s.rooms.config.MessageLimit)
	defer cancel()
	if message.state == nil {
		return s.conn.Write(ctx, websocket.MessageText, message.data)
	}
	if id := message.state.room.ID; !s.keeps(id) {
		if s.rooms.roomOf(s) != id {
			return nil // it has moved to another room since
		}
		return s.expel()
	}
	parts, in := message.state.message(s.token)
	if !in {
		return nil
	}
	if len(message.state.common) > maxCopied {
		return s.writeParts(ctx, parts[:])
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	*buffer = append(append(append((*buffer)[:0], parts[0]...), parts[1]...), parts[2]...)
	return s.conn.Write(ctx, websocket.MessageText, *buffer)
}

// writeParts writes a message in several frames.
func (s *socket) writeParts(ctx context.Context, parts [][]byte) error {
	w, err := s.conn.Writer(ctx, websocket.MessageText)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return w.Close()
}

// ping ends the socket of a client that no longer answers, or may no longer be in its room.
func (s *socket) ping(ctx context.Context) {
	_ = sockets.Ping(ctx, s.conn, s.rooms.config.Ping, func() error {
		if id := s.rooms.roomOf(s); id != "" && !s.keeps(id) {
			return s.expel()
		}
		return nil
	})
}

// handle carries out a message. After any failure the client receives an error and the socket stays open.
func (s *socket) handle(ctx context.Context, data []byte) {
	m, refused := decode(data, s.token)
	if refused != nil {
		s.tell(refused.encoded())
		return
	}
	// A change that has begun is finished even if the client leaves meanwhile: it may already be committed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.rooms.config.StoreLimit)
	defer cancel()
	if err := s.rooms.carryOut(ctx, s, m); err != nil {
		s.tell(s.rooms.refusalFor(err).encoded())
	}
}
