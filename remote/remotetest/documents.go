package remotetest

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

func save(token int64, text string, which remote.Save) remote.Request {
	return remote.Request{Method: "PUT", Path: "/api/documents/" + Document + "/content", Token: token, Save: which, Body: []byte(text)}
}

func testContents(h *harness) {
	read := func() remote.Reply {
		return h.send(h.b, remote.Request{Method: "GET", Path: "/api/documents/" + Document + "/content"})
	}
	h.refused(read(), 404, "document_not_found")
	h.refused(h.send(h.a, save(1, "x", remote.Save{})), 403, "not_locked_by_user")
	held := h.granted(h.a, lock())
	first := remote.Save{Draft: "d", Number: 7, Order: 3}
	require.Equal(h, 200, h.send(h.a, save(held.Token, "seven", first)).Status)
	require.Equal(h, 200, h.send(h.a, save(held.Token, "seven", first)).Status, "again")
	got := read()
	require.Equal(h, "seven", string(got.Body))
	require.Equal(h, held.Token, got.Token)
	require.Equal(h, remote.Save{Draft: "d", Number: 7}, got.Save)
	for _, stale := range []remote.Save{{Draft: "d", Number: 6, Order: 4}, {Draft: "e", Number: 1, Order: 2}, {Order: 2}} {
		h.refused(h.send(h.a, save(held.Token, "late", stale)), 409, "stale_save")
	}
	require.Equal(h, 200, h.send(h.a, save(held.Token, "eight", remote.Save{Draft: "d", Number: 8, Order: 4})).Status)
	h.refused(h.send(h.b, save(held.Token, "steal", remote.Save{})), 403, "not_locked_by_user")
	h.release(h.a, lock(), held)
	next := h.granted(h.b, lock())
	require.Equal(h, 200, h.send(h.b, save(next.Token, "next", remote.Save{Draft: "d", Number: 1, Order: 1})).Status)
	reply := h.send(h.a, save(held.Token, "late", remote.Save{Draft: "d", Number: 9, Order: 5}))
	require.Contains(h, []int{403, 409}, reply.Status)
	require.Equal(h, "next", string(read().Body))
}

// notices returns the notices of the document since a revision.
func (h *harness) notices(s remote.Server, after int64) <-chan remote.Notice {
	h.Helper()
	return h.noticesAt(s, remote.Request{Path: "/api/documents/" + Document + "/events?after=" + strconv.FormatInt(after, 10)})
}

func (h *harness) noticesAt(s remote.Server, r remote.Request) <-chan remote.Notice {
	notices := make(chan remote.Notice, 64)
	ctx, stop := context.WithCancel(h.Context())
	done := make(chan struct{})
	h.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		_ = s.Listen(ctx, r, func(n remote.Notice) { notices <- n })
	}()
	return notices
}

// next returns the next notice about a question.
func (h *harness) next(notices <-chan remote.Notice) remote.Notice {
	h.Helper()
	limit := time.After(patience)
	for {
		select {
		case n := <-notices:
			if n.Ask != "" {
				return n
			}
		case <-limit:
			require.Fail(h, "no question came")
		}
	}
}

func asking(ticket string, grace time.Duration) remote.Request {
	return remote.Request{Method: "POST", Path: lockPath + "/ask?replace=&ticket=" + ticket, Fields: map[string]any{"grace_ms": grace.Milliseconds()}}
}

func answering(how string, n remote.Notice, fields map[string]any) remote.Request {
	fields["ask_id"] = n.Ask
	return remote.Request{Method: "POST", Path: lockPath + "/" + how, Token: n.Token, Fields: fields}
}

func testAskAccepted(h *harness) {
	held := h.granted(h.a, lock())
	notices := h.notices(h.a, held.Token)
	waiting := h.begin(h.c, waits(lock()), 1)
	asked := h.begin(h.b, asking("t", 10*time.Second), 2)
	n := h.next(notices)
	require.Equal(h, remote.NoticeAsked, n.Type)
	require.Equal(h, held.Token, n.Token)
	require.NotEmpty(h, n.HolderName)
	h.refused(h.send(h.Browser("D", ""), asking("u", time.Second)), 409, "handover_busy")
	h.refused(h.send(h.b, answering("accept", n, map[string]any{})), 403, "not_locked_by_user")
	require.Equal(h, 200, h.send(h.a, answering("accept", n, map[string]any{})).Status)
	h.release(h.a, lock(), held)
	next := h.isGrant(h.answered(asked))
	require.Equal(h, "t", next.Ticket)
	h.refused(h.send(h.b, answering("accept", remote.Notice{Ask: n.Ask, Token: next.Token}, map[string]any{})), 404, "ask_not_found")
	h.release(h.b, lock(), next)
	h.isGrant(h.answered(waiting))
}

func testAskRefused(h *harness) {
	held := h.granted(h.a, lock())
	notices := h.notices(h.a, held.Token)
	for i, c := range []struct {
		fields map[string]any
		code   string
		reason string
	}{{map[string]any{"reason": "in a call"}, "handover_refused", "in a call"}, {map[string]any{"busy": true}, "handover_busy", ""}} {
		asked := h.begin(h.b, asking("t"+strconv.Itoa(i), 10*time.Second), 1)
		n := h.next(notices)
		require.Equal(h, remote.NoticeAsked, n.Type)
		require.Equal(h, 200, h.send(h.a, answering("refuse", n, c.fields)).Status)
		reply := h.answered(asked)
		h.refused(reply, 409, c.code)
		require.Equal(h, c.reason, reply.Reason)
		ended := h.next(notices)
		require.Equal(h, remote.NoticeAskEnded, ended.Type)
		require.Equal(h, n.Ask, ended.Ask)
		h.refused(h.send(h.a, answering("accept", n, map[string]any{})), 404, "ask_not_found")
	}
	require.Equal(h, held.Token, h.send(h.a, of("GET", 0)).Token)
}

func testAskSilent(h *harness) {
	held := h.granted(h.a, lock())
	began := time.Now()
	h.refused(h.send(h.b, asking("t", 200*time.Millisecond)), 408, "handover_timeout")
	require.GreaterOrEqual(h, time.Since(began), 200*time.Millisecond)
	asked := h.begin(h.b, asking("u", 10*time.Second), 1)
	require.Equal(h, 200, h.send(h.b, giveUp("u")).Status)
	h.refused(h.answered(asked), 409, "given_up")
	require.Equal(h, held.Token, h.send(h.a, of("GET", 0)).Token)
}

func testAskOwn(h *harness) {
	free := h.granted(h.a, asking("t", time.Second))
	again := h.granted(h.a, asking("t", time.Second))
	require.Equal(h, free.Token, again.Token, "its answer was lost")
	reply := h.send(h.a, asking("u", time.Second))
	h.refused(reply, 409, "left_behind")
	require.Equal(h, []int64{free.Token}, reply.Tokens)
}

// below makes a request about the document one about the document at "y" below it.
func below(r remote.Request) remote.Request {
	r.Path = strings.Replace(r.Path, "/"+Document+"/", "/"+Document+"~.y/", 1)
	return r
}

// A document may be at a path below another one. A question about it is no question about its siblings or the document around them.
func testAskBelow(h *harness) {
	sibling := h.granted(h.a, places("x"))
	own := h.granted(h.a, below(asking("t", time.Second)))
	require.NotEqual(h, sibling.Token, own.Token)
	reply := h.send(h.a, below(asking("u", time.Second)))
	h.refused(reply, 409, "left_behind")
	require.Equal(h, []int64{own.Token}, reply.Tokens, "the lease of the sibling stays")
	h.refused(h.send(h.b, places("x")), 409, "acquire_denied")
}

// A client asks for a document, and another one holds the document below it. The other client receives the question, and answers it, as the holder of its
// own document. Everybody can see what it holds.
func testAskAround(h *harness) {
	held := h.granted(h.a, places("y"))
	shown := h.send(h.b, of("GET", 0))
	require.Equal(h, held.Token, shown.Token)
	require.False(h, shown.Mine)
	require.Equal(h, [][]string{{"documents", Document, "y"}}, shown.Paths)
	notices := h.noticesAt(h.a, below(remote.Request{Path: "/api/documents/" + Document + "/events?after=" + strconv.FormatInt(held.Token, 10)}))
	for i, how := range []string{"refuse", "accept"} {
		asked := h.begin(h.b, asking("t"+strconv.Itoa(i), 10*time.Second), 1)
		n := h.next(notices)
		require.Equal(h, remote.NoticeAsked, n.Type)
		require.Equal(h, held.Token, n.Token)
		h.refused(h.send(h.a, answering(how, n, map[string]any{})), 404, "lock_not_found")
		require.Equal(h, 200, h.send(h.a, below(answering(how, n, map[string]any{}))).Status)
		if how == "refuse" {
			h.refused(h.answered(asked), 409, "handover_refused")
			require.Equal(h, remote.NoticeAskEnded, h.next(notices).Type)
			continue
		}
		h.release(h.a, places("y"), held)
		h.isGrant(h.answered(asked))
	}
	require.Nil(h, h.send(h.a, of("GET", 0)).Paths, "it is the lock of the document itself")
}

// A client asks for a document, and two others hold documents below it. Both receive the question. When one refuses, the question to the other ends.
func testAskSeveral(h *harness) {
	at := func(r remote.Request, name string) remote.Request {
		r.Path = strings.Replace(r.Path, "/"+Document+"/", "/"+Document+"~."+name+"/", 1)
		return r
	}
	x, y := h.granted(h.a, places("x")), h.granted(h.b, places("y"))
	shown := h.send(h.a, of("GET", 0))
	require.True(h, shown.Mine)
	require.Len(h, shown.Holders, 2, "all locks in the way are shown")
	for i, name := range []string{"x", "y"} {
		require.Equal(h, [][]string{{"documents", Document, name}}, shown.Holders[i].Paths)
		require.Equal(h, name == "x", shown.Holders[i].Mine)
	}
	after := "/api/documents/" + Document + "/events?after=" + strconv.FormatInt(y.Token, 10)
	atX, atY := h.noticesAt(h.a, at(remote.Request{Path: after}, "x")), h.noticesAt(h.b, at(remote.Request{Path: after}, "y"))
	for i, how := range []string{"refuse", "accept"} {
		asked := h.begin(h.c, asking("t"+strconv.Itoa(i), 10*time.Second), 1)
		toX, toY := h.next(atX), h.next(atY)
		require.Equal(h, []string{remote.NoticeAsked, remote.NoticeAsked}, []string{toX.Type, toY.Type})
		require.Equal(h, []int64{x.Token, y.Token}, []int64{toX.Token, toY.Token})
		require.Equal(h, 200, h.send(h.a, at(answering("accept", toX, map[string]any{}), "x")).Status)
		require.Equal(h, 200, h.send(h.b, at(answering(how, toY, map[string]any{}), "y")).Status)
		if how == "refuse" {
			h.refused(h.answered(asked), 409, "handover_refused")
			require.Equal(h, remote.NoticeAskEnded, h.next(atX).Type)
			require.Equal(h, remote.NoticeAskEnded, h.next(atY).Type)
			continue
		}
		h.release(h.a, places("x"), x)
		h.release(h.b, places("y"), y)
		h.isGrant(h.answered(asked))
	}
}

// Two clients ask for two documents below the same one. Neither question is in the way of the other one.
func testAskTwo(h *harness) {
	x, y := h.granted(h.a, places("x")), h.granted(h.a, places("y"))
	first := h.begin(h.b, below(asking("t", 10*time.Second)), 1)
	other := below(asking("u", 10*time.Second))
	other.Path = strings.Replace(other.Path, "~.y/", "~.x/", 1)
	second := h.begin(h.c, other, 2)
	h.release(h.a, places("y"), y)
	h.isGrant(h.answered(first))
	h.release(h.a, places("x"), x)
	h.isGrant(h.answered(second))
}

// A client asks for a document of which it has a slot itself. Nobody else is asked, and the request waits in vain.
func testAskOwnSlot(h *harness) {
	h.granted(h.a, with(places("y"), "slots", 2))
	request := below(asking("t", 200*time.Millisecond))
	request.Path = strings.Replace(request.Path, "replace=&", "", 1)
	h.refused(h.send(h.a, request), 408, "handover_timeout")
}
