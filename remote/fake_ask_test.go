package remote_test

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	documents "github.com/holdfast-dev/holdfast/internal/document"
	"github.com/holdfast-dev/holdfast/remote"
)

// inquiry is a question to the holder of a lock, as the server stores it.
type inquiry struct {
	id                      string
	document                string // whose events and answers it is among
	token                   int64
	by, ticket              string
	accepted, refused, busy bool
	reason                  string
	request                 *leased   // waits before all others
	limit                   time.Time // for the answer, or for the handover after it
}

// heard is a notice to those that listen to the events of a document.
type heard struct {
	document string
	remote.Notice
}

// notify notifies all listeners. It is called with the mutex held.
func (n *internet) notify(kind string, q *inquiry) {
	n.token++
	n.notices = append(n.notices, heard{q.document, remote.Notice{Type: kind, Revision: n.token, Token: q.token, Ask: q.id, HolderName: "tab " + q.by}})
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
			if notice := n.notices[i]; notice.document == documentIn(target) && notice.Revision > after {
				after = notice.Revision
				n.mu.Unlock()
				handle(notice.Notice)
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

// asksAbout returns the document whose holder is asked: the requested one, or that of another lock that is in the way.
func (l *leased) asksAbout(held *leased) string {
	paths := slices.Concat(held.paths, l.paths)
	if held.whole() && held.same(l) {
		paths = l.paths
	}
	for _, p := range paths {
		if id, ok := documents.ID(p[1:]); ok && p[0] == document[0] {
			return id
		}
	}
	return ""
}

// pose opens the questions of a request to the holders that block it, unless another one is open. It opens none if a lease of the same owner
// blocks the request, which does not replace it.
func (n *internet) pose(whole *leased, grace time.Duration) (list []*inquiry, busy bool) {
	for _, holder := range n.blockers(whole) {
		about := whole.asksAbout(holder)
		switch {
		case holder.session == whole.session && !whole.fresh && !slices.Contains(whole.replace, holder.token):
			return nil, false
		case holder.session == whole.session, slices.ContainsFunc(list, func(q *inquiry) bool { return q.document == about }):
			continue
		}
		if open := n.questions[about]; open != nil && open.token == holder.token && !open.refused && (whole.ticket == "" || open.key() != whole.key()) {
			busy = true
		}
		list = append(list, &inquiry{id: strconv.FormatInt(n.token, 10), document: about, token: holder.token, by: whole.session, ticket: whole.ticket, request: whole,
			limit: time.Now().Add(grace)})
	}
	if busy {
		return nil, true
	}
	for _, q := range list {
		if open := n.questions[q.document]; open != nil && open.token == q.token && !open.refused {
			n.notify(remote.NoticeAskEnded, open)
		}
		n.questions[q.document] = q
		n.notify(remote.NoticeAsked, q)
	}
	return list, false
}

func (q *inquiry) key() string { return q.by + "/" + q.ticket }

// withdraw closes a question, if it is open.
func (n *internet) withdraw(q *inquiry, ended bool) {
	if n.questions[q.document] == q {
		delete(n.questions, q.document)
		if n.change(); ended {
			n.notify(remote.NoticeAskEnded, q)
		}
	}
}

// ask is called with the mutex held, and returns with it held.
func (b *browser) ask(ctx context.Context, r remote.Request, whole *leased) (remote.Reply, error) {
	n := b.net
	grace, _ := r.Fields["grace_ms"].(int64)
	if b.visitor && whole.exact {
		return noSession, nil
	}
	list, busy := n.pose(whole, time.Duration(grace)*time.Millisecond)
	switch {
	case busy:
		return remote.Reply{Status: 409, Error: "handover_busy"}, nil
	case len(list) == 0:
		whole.wait = time.Duration(grace) * time.Millisecond
		reply, err := b.lock(ctx, whole)
		if reply.Error == "already_locked" {
			reply = remote.Reply{Status: 408, Error: "handover_timeout"}
		}
		return reply, err
	}
	reply, answered := n.makeWay(whole)
	var granted bool
	var err error
	if !answered {
		reply, granted, err = b.awaitAnswer(ctx, whole, list)
	}
	for _, q := range list {
		n.withdraw(q, !granted)
	}
	if granted {
		whole.first = true
		return b.lock(ctx, whole)
	}
	return reply, err
}

// awaitAnswer waits until the request of the questions may be granted, or one of them ends.
func (b *browser) awaitAnswer(ctx context.Context, request *leased, list []*inquiry) (reply remote.Reply, granted bool, err error) {
	n := b.net
	for {
		if reply, answered := n.repeated(request); answered {
			return reply, false, nil
		}
		in := n.blockers(request)
		if len(in) == 0 {
			return reply, true, nil
		}
		pause := time.Duration(math.MaxInt64)
		for _, l := range in {
			pause = min(pause, time.Until(l.expires))
		}
		for _, q := range list {
			if reply, ended := n.failed(q); ended {
				return reply, false, nil
			}
			if slices.ContainsFunc(in, func(l *leased) bool { return l.token == q.token }) {
				pause = min(pause, time.Until(q.limit))
			}
		}
		if err := n.pause(ctx, pause); err != nil {
			return remote.Reply{}, false, err
		}
	}
}

// failed returns the answer to a question that has ended without the lock. A holder whose lock has ended need not answer.
func (n *internet) failed(q *inquiry) (reply remote.Reply, ended bool) {
	stands := slices.ContainsFunc(n.live(), func(l *leased) bool { return l.token == q.token })
	switch {
	case q.refused && q.busy:
		return remote.Reply{Status: 409, Error: "handover_busy"}, true
	case q.refused:
		return remote.Reply{Status: 409, Error: "handover_refused", Reason: q.reason}, true
	case n.questions[q.document] != q:
		return remote.Reply{Status: 409, Error: "replaced"}, true
	case stands && !time.Now().Before(q.limit):
		return remote.Reply{Status: 408, Error: "handover_timeout"}, true
	}
	return reply, false
}

// reply is the holder's answer. It is called with the mutex held.
func (b *browser) reply(r remote.Request, target *url.URL) remote.Reply {
	n := b.net
	holder, q := n.on(b.wholeRequest(target)), n.questions[documentIn(target)]
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
		if !q.accepted {
			q.accepted, q.limit = true, time.Now().Add(15*time.Second)
		}
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
