package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Backup writes an archive of everything that the server has to w. It takes the permission "admin" for everything. It
// fails with [ErrNotAllowed] and [ErrUnauthenticated] before it writes. Whether the archive is whole shows at its end:
// "holdfast backup" checks that.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var body io.ReadCloser
	_, err := c.until(ctx, time.Now().Add(c.config.Patience), func() (answer reply, err error) {
		body, err = c.openBackup(ctx)
		return reply{}, err
	})
	if err != nil {
		return named(err, "back up", c.base)
	}
	defer func() { _ = body.Close() }()
	stalled := time.AfterFunc(contentLimit, func() { cancel(errors.New("the server has sent nothing for " + contentLimit.String())) })
	defer stalled.Stop()
	_, err = io.Copy(w, &alive{body, stalled})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return &Error{Operation: "back up", Resource: c.base, Code: ErrUnreachable.Code, Message: "the archive did not arrive whole", Err: err}
	}
	return nil
}

// openBackup returns the archive after a successful status.
func (c *Client) openBackup(ctx context.Context) (io.ReadCloser, error) {
	request, err := c.request(ctx, call{method: "GET", path: "/api/backup", session: c.owners.base})
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err == nil && response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	if err == nil {
		var body []byte
		body, err = io.ReadAll(io.LimitReader(response.Body, 64<<10))
		_ = response.Body.Close()
		if err == nil {
			_, err = read(response, body)
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, aborted(ctx)
	}
	return nil, c.unreachable(err)
}

// alive postpones a timer at each read.
type alive struct {
	io.Reader
	stalled *time.Timer
}

func (a *alive) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	a.stalled.Reset(contentLimit)
	return n, err
}
