// Package sockets has what the WebSockets of events and of rooms share. It ends a socket whose client no longer answers or may no longer
// listen, and it bounds the work that a client causes by pings.
package sockets

import (
	"context"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// missedPongs is the number of pongs in a row that may be missing before a client counts as gone.
const missedPongs = 2

// The server answers this many pings of a client per second, and this many in a burst.
const pongsPerSecond, pongsAtOnce = 2, 10

// Pongs returns a function that decides whether a ping of a client is answered. RFC 6455 lets a pong answer earlier pings too, and a client
// that sends pings without end would keep the server busy with the answers.
func Pongs() func(context.Context, []byte) bool {
	pace := rate.NewLimiter(pongsPerSecond, pongsAtOnce)
	return func(context.Context, []byte) bool { return pace.Allow() }
}

// Ping sends a ping at each interval, and calls may before. It returns nil when ctx has ended or the client no longer answers, and the error
// of may otherwise.
func Ping(ctx context.Context, conn *websocket.Conn, interval time.Duration, may func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for missed := 0; missed < missedPongs; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		if err := may(); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, interval)
		if conn.Ping(limited) == nil {
			missed = 0
		} else {
			missed++
		}
		cancel()
	}
	return nil
}
