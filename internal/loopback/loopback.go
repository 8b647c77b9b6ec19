// Package loopback finds free ports for tests.
package loopback

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// reserved are sockets at the ports that this process has got.
var reserved struct {
	mu      sync.Mutex
	sockets []net.PacketConn
}

// The ports that [FreePort] returns are not those that systems give to a program that asks for any port: Linux begins at 32768, others above.
const first, count = 20_000, 12_000

// FreePort returns a TCP port of 127.0.0.1 on which nothing listens. No other call returns it before this process ends, here or in another process:
// its number is taken for UDP.
func FreePort() (string, error) {
	for range count {
		port := strconv.Itoa(first + rand.IntN(count))
		socket, err := net.ListenPacket("udp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			_ = socket.Close()
			continue
		}
		reserved.mu.Lock()
		reserved.sockets = append(reserved.sockets, socket)
		reserved.mu.Unlock()
		return port, l.Close()
	}
	return "", errors.New("no port is free")
}
