package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Listing has the holders and the waiters at a place, above it and below it, in the order of arrival.
type Listing struct {
	Holders []Holder `json:"holders"`
	Waiters []Waiter `json:"waiters"`
}

// Locks lists the locks at a place and the requests that wait for it, as far as this client may read their paths.
func (c *Client) Locks(ctx context.Context, path ...string) (Listing, error) {
	query := url.Values{"path": {spell(path)}}
	var all Listing
	for {
		var page struct {
			Listing
			Next string `json:"next"`
		}
		if err := c.get(ctx, "/api/locks?"+query.Encode(), &page); err != nil {
			return Listing{}, named(err, "list the locks at", strings.Join(path, "/"))
		}
		all.Holders, all.Waiters = append(all.Holders, page.Holders...), append(all.Waiters, page.Waiters...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("after", page.Next)
	}
}

// spell joins the components of a path with slashes; a slash in one is escaped.
func spell(path []string) string {
	escaped := make([]string, len(path))
	for i, component := range path {
		escaped[i] = url.PathEscape(component)
	}
	return strings.Join(escaped, "/")
}

// Break ends the lock of another owner on a document. The reason has 1 to 1024 bytes, and the holder gets it. Break needs the permission
// "break". It fails with [ErrLockNotFound] and [ErrNotAllowed].
func (c *Client) Break(ctx context.Context, id, reason string) error {
	path, err := documentPath("break the lock on", id, "/lock/break")
	if err != nil {
		return err
	}
	// The request is sent once, because a second one could break the lock of the next holder.
	_, err = c.try(ctx, c.breaking(path, reason))
	return named(err, "break the lock on", "the document "+id)
}

// BreakLease is [Client.Break] for any lease, by [Holder.LeaseID].
func (c *Client) BreakLease(ctx context.Context, leaseID, reason string) error {
	mayHaveBroken := false // an earlier request may have broken it: no other lease has this ID
	_, err := c.until(ctx, time.Now().Add(c.config.Patience), func() (reply, error) {
		answer, err := c.try(ctx, c.breaking("/api/locks/"+url.PathEscape(leaseID)+"/break", reason))
		if mayHaveBroken && errors.Is(err, ErrLockNotFound) {
			return answer, nil
		}
		_, again := mayPass(err)
		mayHaveBroken = mayHaveBroken || again
		return answer, err
	})
	return named(err, "break", "the lease "+leaseID)
}

func (c *Client) breaking(path, reason string) call {
	return call{method: http.MethodPost, path: path, session: c.owners.base, json: breakBody{reason, c.config.Name}}
}
