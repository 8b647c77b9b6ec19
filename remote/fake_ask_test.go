package remote_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/remote"
)

// inquiry is a question to the holder of the document, as the server stores it.
type inquiry struct {
	id                      string
	token                   int64
	by                      string
	accepted, refused, busy bool
	reason                  string
}

// notify notifies all listeners. It is called with the mutex held.
func (n *internet) notify(kind string, q *inquiry) {
	n.token++
	n.notices = append(n.notices, remote.Notice{Type: kind, Revision: n.token, Token: q.token, Ask: q.id, HolderName: "tab " + q.by})
	n.change()
}

// Listen implements [remote.Server].
func (b *browser) Listen(ctx context.Context, r remote.Request, handle func(remote.Notice)) error {
	target, err := url.Parse(r.Path)
	if err != nil {
		return err
	}
	after, err := strconv.ParseInt(target.Query().Get("after"), 10, 64)
	if err != nil {
		return err
	}
	n := b.net
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, "LISTEN "+b.session)
	if n.users != nil && !n.users[r.Bearer] {
		return errOffline // a browser does not say why
	}
	n.listening++
	defer func() { n.listening-- }()
	for {
		if n.down || n.silent || b.deaf {
			return errOffline
		}
		for i := 0; i < len(n.notices); i++ { // more may arrive while one is handled
			if notice := n.notices[i]; notice.Revision > after {
				after = notice.Revision
				n.mu.Unlock()
				handle(notice)
				n.mu.Lock()
			}
		}
		changed, broken := n.changed, n.broken
		n.mu.Unlock()
		select {
		case <-changed:
		case <-broken:
			err = errOffline
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		n.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// ask is called with the mutex held, and returns with it held.
func (b *browser) ask(ctx context.Context, r remote.Request, whole *leased) (remote.Reply, error) {
	n := b.net
	grace, _ := r.Fields["grace_ms"].(int64)
	holder := n.around(whole)
	switch {
	case b.visitor && whole.exact:
		return noSession, nil
	case holder == nil || holder.session == b.owner():
		whole.wait = time.Duration(grace) * time.Millisecond
		return b.lock(ctx, whole)
	case n.question != nil:
		return remote.Reply{Status: 409, Error: "handover_busy"}, nil
	}
	q := &inquiry{id: strconv.FormatInt(n.token, 10), token: holder.token, by: b.owner()}
	n.question = q
	n.notify(remote.NoticeAsked, q)
	defer func() { n.question = nil; n.change() }()
	limit := time.Now().Add(time.Duration(grace) * time.Millisecond)
	for {
		if reply, answered := n.repeated(whole); answered {
			n.notify(remote.NoticeAskEnded, q)
			return reply, nil
		}
		switch now := n.around(whole); {
		case now == nil || now.token != q.token:
			n.question = nil
			whole.first = true
			return b.lock(ctx, whole)
		case q.refused && q.busy:
			n.notify(remote.NoticeAskEnded, q)
			return remote.Reply{Status: 409, Error: "handover_busy"}, nil
		case q.refused:
			n.notify(remote.NoticeAskEnded, q)
			return remote.Reply{Status: 409, Error: "handover_refused", Reason: q.reason}, nil
		case !time.Now().Before(limit):
			n.notify(remote.NoticeAskEnded, q)
			return remote.Reply{Status: 408, Error: "handover_timeout"}, nil
		}
		accepted := q.accepted
		if err := n.pause(ctx, min(time.Until(limit), time.Until(n.around(whole).expires))); err != nil {
			n.notify(remote.NoticeAskEnded, q)
			return remote.Reply{}, err
		}
		if q.accepted && !accepted {
			limit = time.Now().Add(15 * time.Second)
		}
	}
}

// reply is the holder's answer. It is called with the mutex held.
func (b *browser) reply(r remote.Request) remote.Reply {
	n := b.net
	holder, q := n.now(), n.question
	switch {
	case holder == nil:
		return remote.Reply{Status: 404, Error: "lock_not_found"}
	case holder.session != b.owner():
		return remote.Reply{Status: 403, Error: "not_locked_by_user"}
	case r.Token != holder.token:
		return remote.Reply{Status: 409, Error: "stale_token"}
	case q == nil || q.id != r.Fields["ask_id"] || q.token != holder.token || q.refused:
		return remote.Reply{Status: 404, Error: "ask_not_found"}
	case strings.HasSuffix(r.Path, "/accept"):
		q.accepted = true
	default:
		q.refused = true
		q.reason, _ = r.Fields["reason"].(string)
		q.busy, _ = r.Fields["busy"].(bool)
	}
	n.change()
	return remote.Reply{Status: 200}
}

// connections returns how many sockets are open.
func (n *internet) connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listening
}
