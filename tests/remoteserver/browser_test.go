package remoteserver

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/tests/remotehttp"
)

// browser is a page's connection to a real server, like port.js in a browser.
type browser struct {
	url, origin string
	client      *http.Client // with the cookies of the session
}

// Send implements [remote.Server].
func (b browser) Send(ctx context.Context, r remote.Request) (remote.Reply, error) {
	body, err := remotehttp.Body(r)
	if err != nil {
		return remote.Reply{}, err
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, b.url+strings.ReplaceAll(r.Path, " ", "%20"), bytes.NewReader(body))
	if err != nil {
		return remote.Reply{}, err
	}
	b.headers(request.Header, r)
	response, err := b.client.Do(request)
	if err != nil {
		return remote.Reply{}, err
	}
	defer response.Body.Close()
	return remotehttp.ReadReply(response)
}

func (b browser) headers(h http.Header, r remote.Request) {
	if b.origin != "" {
		h.Set("Origin", b.origin)
	}
	remotehttp.SetHeaders(h, r)
}

// Listen implements [remote.Server].
func (b browser) Listen(ctx context.Context, r remote.Request, handle func(remote.Notice)) error {
	header := http.Header{}
	b.headers(header, remote.Request{})
	conn, _, err := websocket.Dial(ctx, b.url+r.Path, &websocket.DialOptions{HTTPClient: b.client, HTTPHeader: header})
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		n, err := remotehttp.ReadNotice(text)
		if err != nil {
			return err
		}
		handle(n)
	}
}
