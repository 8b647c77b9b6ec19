package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/document"
)

// Info describes a content.
type Info struct {
	ETag string `json:"etag"`
	// Token is the token of the lease under which the content was written.
	Token int64 `json:"token"`
	// Generation names it in the history.
	Generation string    `json:"generation"`
	Size       int64     `json:"size"` // in bytes
	SavedAt    time.Time `json:"saved_at"`
}

// Content is the current or an earlier content of a document.
type Content struct {
	Info
	Data []byte
}

// GetOptions say which content to read.
type GetOptions struct {
	// Generation reads an earlier content of the history.
	Generation string
	// IfNoneMatch is the ETag of a content that the caller has: [Client.Get] fails with [ErrNotModified] if it is still the same.
	IfNoneMatch string
}

// Get reads the content of a document. It needs no lock. It fails with [ErrNotFound] and [ErrNotModified].
func (c *Client) Get(ctx context.Context, id string, o GetOptions) (Content, error) {
	path, err := documentPath("read", id, "/content")
	if err != nil {
		return Content{}, err
	}
	if o.Generation != "" {
		path += "?generation=" + url.QueryEscape(o.Generation)
	}
	header := map[string]string{}
	if o.IfNoneMatch != "" {
		header["If-None-Match"] = o.IfNoneMatch
	}
	answer, err := c.do(ctx, call{method: http.MethodGet, path: path, session: c.owners.base, header: header, limit: contentLimit})
	if err != nil {
		return Content{}, named(err, "read", "the document "+id)
	}
	info := Info{ETag: answer.header.Get("ETag"), Generation: answer.header.Get("Holdfast-Generation"), Size: int64(len(answer.body))}
	info.Token, _ = strconv.ParseInt(answer.header.Get("Holdfast-Token"), 10, 64)
	info.SavedAt, _ = time.Parse(time.RFC3339, answer.header.Get("Holdfast-Saved-At"))
	return Content{info, answer.body}, nil
}

// PutOptions are the conditions of a write.
type PutOptions struct {
	// IfMatch is the ETag that the present content must have.
	IfMatch string
	// IfAbsent lets the write succeed only if the document has no content.
	IfAbsent bool
}

func (o PutOptions) header() map[string]string {
	header := map[string]string{}
	if o.IfMatch != "" {
		header["If-Match"] = o.IfMatch
	}
	if o.IfAbsent {
		header["If-None-Match"] = "*"
	}
	return header
}

// Put writes the content of a document under the fence of a lease that covers exactly this document. The server checks the token in the
// transaction that writes. Of two writes or deletions of one client under one lease the one that began later stays, in whatever order they arrive.
//
// If nothing was written, the error matches [ErrStaleToken] or [ErrNotHolder] (the lease has ended), [ErrStaleSave], [ErrPrecondition],
// [ErrTooLarge] or [ErrStoreFull]. After [ErrUnreachable] and [ErrAborted] the content may have been written. If an attempt had no answer and a
// later one was refused, the error matches [ErrUnreachable] and the refusal.
func (c *Client) Put(ctx context.Context, f Fence, id string, data []byte, o PutOptions) (Info, error) {
	path, err := documentPath("write", id, "/content")
	if err != nil {
		return Info{}, err
	}
	header := o.header()
	header["Content-Type"] = "application/octet-stream"
	header["Holdfast-Save"] = c.save()
	answer, err := c.change(ctx, call{method: http.MethodPut, path: path, session: f.Session, token: f.Token, header: header, body: data, limit: contentLimit})
	info := Info{Token: f.Token, Size: int64(len(data))}
	if err == nil {
		err = answer.decode(&info)
	}
	if err != nil {
		return Info{}, named(err, "write", "the document "+id)
	}
	return info, nil
}

// change sends a request that changes a content. The refusal of one attempt does not tell what an earlier one without an answer has done.
func (c *Client) change(ctx context.Context, r call) (reply, error) {
	unanswered := false
	answer, err := c.until(ctx, time.Now().Add(c.config.Patience), func() (reply, error) {
		answer, err := c.try(ctx, r)
		unanswered = unanswered || err != nil && !refused(err)
		return answer, err
	})
	if err != nil && unanswered && refused(err) {
		err = &Error{Code: ErrUnreachable.Code, Message: "one attempt had no answer, so it may have been done; the next one was refused", Err: err}
	}
	return answer, err
}

// refused reports whether an attempt was answered and did nothing.
func refused(err error) bool {
	_, again := mayPass(err)
	return !errors.Is(err, ErrAborted) && (!again || errors.Is(err, &Error{Code: rateLimited}))
}

// save names the next write of this client.
func (c *Client) save() string { return c.draft + "/" + itoa(c.writes.Add(1)) }

// Delete removes the content of a document, its history and its events; the lock stays. An administrator may leave the fence empty; that
// request is sent once, because a second one could delete what the holder has saved since. Delete fails like [Client.Put]. A document without
// content is no error.
func (c *Client) Delete(ctx context.Context, f Fence, id string, o PutOptions) error {
	path, err := documentPath("delete", id, "")
	if err != nil {
		return err
	}
	send := c.change
	if f.Session == "" {
		f.Session, send = c.owners.base, c.try
	}
	header := o.header()
	header["Holdfast-Save"] = c.save() // a write that began before does not bring the document back
	_, err = send(ctx, call{method: http.MethodDelete, path: path, session: f.Session, token: f.Token, header: header})
	return named(err, "delete", "the document "+id)
}

// History lists what a document contained, the latest first, as far as the server keeps it.
func (c *Client) History(ctx context.Context, id string) ([]Info, error) {
	path, err := documentPath("read the history of", id, "/history")
	if err != nil {
		return nil, err
	}
	var body struct {
		Generations []Info `json:"generations"`
	}
	err = c.get(ctx, path, &body)
	return body.Generations, named(err, "read the history of", "the document "+id)
}

// Document is a document of a listing.
type Document struct {
	ID       string    `json:"document"`
	Size     int64     `json:"size"` // in bytes
	SavedAt  time.Time `json:"saved_at"`
	ETag     string    `json:"etag"`
	IsLocked bool      `json:"is_locked"`
}

// Documents lists the documents with a content whose ids begin with prefix, in the order of their ids. After an error the list ends.
func (c *Client) Documents(ctx context.Context, prefix string) iter.Seq2[Document, error] {
	type page struct {
		Documents []Document `json:"documents"`
		Next      string     `json:"next"`
	}
	query := url.Values{}
	if prefix != "" {
		query.Set("prefix", prefix)
	}
	return func(yield func(Document, error) bool) {
		for {
			var p page
			if err := c.get(ctx, "/api/documents?"+query.Encode(), &p); err != nil {
				yield(Document{}, named(err, "list", "the documents"))
				return
			}
			for _, d := range p.Documents {
				if !yield(d, nil) {
					return
				}
			}
			if p.Next == "" {
				return
			}
			query.Set("after", p.Next)
		}
	}
}

// get reads JSON.
func (c *Client) get(ctx context.Context, path string, into any) error {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: path, session: c.owners.base})
	if err != nil {
		return err
	}
	return answer.decode(into)
}

// DocumentPath returns the place of a document, for [Client.Locks] and [Request].Paths.
func DocumentPath(id string) []string { return append([]string{"documents"}, document.Path(id)...) }

// documentPath returns the path of a request about a document.
func documentPath(operation, id, rest string) (string, error) {
	if !document.IsID(id) {
		return "", badDocument(operation, id)
	}
	return "/api/documents/" + id + rest, nil
}
