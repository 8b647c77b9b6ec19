package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/server/servertest"
)

// BenchmarkCycle makes 64 clients acquire and release locks over HTTP, as make bench-server does. The clients allocate
// nothing, so the allocations are the server's. Run it with -benchtime 20000x and -memprofile.
func BenchmarkCycle(b *testing.B) {
	const clients = 64
	s := servertest.Start(b, servertest.Unlimited(b))
	crowd := make([]*rawClient, clients)
	for i := range crowd {
		crowd[i] = dialRaw(b, strings.TrimPrefix(s.URL, "http://"), i)
	}
	run := func(cycles int64) {
		var next atomic.Int64
		var group errgroup.Group
		for _, c := range crowd {
			group.Go(func() error {
				for next.Add(1) <= cycles {
					if err := c.cycle(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(b, group.Wait())
	}
	run(2000)
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime(b)
	run(int64(b.N))
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// rawClient sends requests over one connection without allocations.
type rawClient struct {
	conn   net.Conn
	in     *bufio.Reader
	out    []byte
	name   string
	cycles int
}

func dialRaw(b *testing.B, addr string, i int) *rawClient {
	conn, err := net.Dial("tcp", addr)
	require.NoError(b, err)
	b.Cleanup(func() { conn.Close() })
	return &rawClient{conn: conn, in: bufio.NewReader(conn), name: strconv.Itoa(i)}
}

func (c *rawClient) cycle() error {
	c.cycles++
	if err := c.call("POST"); err != nil {
		return err
	}
	return c.call("DELETE")
}

// call sends the headers that Go's client sends.
func (c *rawClient) call(method string) error {
	c.out = append(append(c.out[:0], method...), " /api/documents/crowd-"...)
	c.out = append(append(c.out, c.name...), '-')
	c.out = append(strconv.AppendInt(c.out, int64(c.cycles), 10), "/lock HTTP/1.1\r\nHost: 127.0.0.1:12345\r\nUser-Agent: Go-http-client/1.1\r\n"...)
	if method == "POST" {
		c.out = append(c.out, "Content-Length: 0\r\n"...)
	}
	c.out = append(append(append(c.out, "Authorization: Bearer bench-"...), c.name...), "\r\nAccept-Encoding: gzip\r\n\r\n"...)
	if _, err := c.conn.Write(c.out); err != nil {
		return err
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		switch value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); {
		case err != nil:
			return err
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")):
			return fmt.Errorf("%s: %s", method, line)
		case ok:
			for _, digit := range bytes.TrimSpace(value) {
				length = 10*length + int(digit-'0')
			}
		case len(line) == 2:
			_, err := c.in.Discard(length)
			return err
		}
	}
}

func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
