// Package loopback finds free ports for tests.
package loopback

import "net"

// FreePort returns a TCP port of 127.0.0.1 on which nothing listened a moment ago.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	return port, l.Close()
}
