package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Backup writes an archive of everything that the server has to w. It needs the permission "admin" for everything.
//
// It fails with [ErrNotAllowed] and [ErrUnauthenticated] before it writes anything; with [ErrUnreachable], also if the server sends nothing for a
// minute; with [ErrAborted]; and with an error of w. Only the end of the archive shows whether the archive is whole: "holdfast backup" checks that.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	var archive *arriving
	_, err := c.until(ctx, time.Now().Add(c.config.Patience), func() (answer reply, err error) {
		archive, err = c.openBackup(ctx)
		return reply{}, err
	})
	if err != nil {
		return named(err, "back up", c.base)
	}
	defer archive.end()
	_, err = io.Copy(w, archive)
	if err != nil && archive.err == nil {
		return fmt.Errorf("back up %s: the archive cannot be written: %w", c.base, err)
	}
	if err != nil {
		return named(c.failed(ctx, archive.ctx, fmt.Errorf("the archive did not arrive whole: %w", err)), "back up", c.base)
	}
	return nil
}

// openBackup returns the archive after a successful status.
func (c *Client) openBackup(ctx context.Context) (*arriving, error) {
	limited, cancel := context.WithCancelCause(ctx)
	archive := &arriving{ctx: limited, cancel: cancel}
	archive.stalled = time.AfterFunc(contentLimit, func() { cancel(errors.New("the server has sent nothing for " + contentLimit.String())) })
	request, err := c.request(limited, call{method: "GET", path: "/api/backup", session: c.owners.base})
	if err != nil {
		archive.end()
		return nil, err
	}
	response, err := c.http.Do(request) //nolint:bodyclose // archive.end closes it
	if err == nil {
		archive.body = response.Body
	}
	if err == nil && response.StatusCode == http.StatusOK {
		return archive, nil
	}
	defer archive.end()
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(archive, 64<<10)); err == nil {
			_, err = read(response, body)
			return nil, err
		}
	}
	return nil, c.failed(ctx, limited, err)
}

// arriving is the body of an answer. Its context ends when nothing of it arrives for contentLimit, and reading it fails then.
type arriving struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stalled *time.Timer
	body    io.ReadCloser // nil before the answer
	err     error         // of reading it
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.err = err
	}
	a.stalled.Reset(contentLimit)
	return n, err
}

func (a *arriving) end() {
	a.stalled.Stop()
	a.cancel(nil)
	if a.body != nil {
		_ = a.body.Close()
	}
}
