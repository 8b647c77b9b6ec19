package server_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

const lockInfo = `<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:%s/></D:lockscope><D:locktype><D:write/></D:locktype><D:owner>Ann's Writer</D:owner></D:lockinfo>`

// davLock locks by WebDAV and returns the lock's token.
func (c client) davLock(path, scope, depth string) string {
	c.t.Helper()
	a := c.with("Depth", depth).do("LOCK", path, fmt.Sprintf(lockInfo, scope))
	require.Less(c.t, a.status, 300, string(a.text))
	return strings.Trim(a.header.Get("Lock-Token"), "<>")
}

// under submits the token of a lock.
func (c client) under(tokens ...string) client {
	return c.with("If", "(<"+strings.Join(tokens, ">) (<")+">)")
}

// status sends requests, as "PUT /dav/a text", and checks the status of each.
func (c client) status(status int, requests ...string) {
	c.t.Helper()
	for _, request := range requests {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		a := c.do(method, path, body)
		assert.Equal(c.t, status, a.status, "%s: %s", request, a.text)
	}
}

// to names the destination of a COPY or MOVE.
func (c client) to(path string) client { return c.with("Destination", c.base+path) }

// A desktop program and a web editor exclude each other, and each sees what the other has saved.
func TestDesktopProgramAndEditorShareTheLock(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	far := s.another(t, nil)
	writer, editor := s.as(t, "writer"), far.as(t, "editor").named("Bob")
	events := far.events(t, "plan.odt", "")

	token := writer.davLock("/dav/plan.odt", "exclusive", "0")
	assert.Regexp(t, `^urn:uuid:[0-9a-f-]{36}$`, token)
	denied := editor.do("POST", lockOf("plan.odt"), nil)
	assertError(t, denied, http.StatusConflict, "already_locked")
	assert.Equal(t, "Ann's Writer", denied.body["holder_name"])

	// Any member of the cluster knows the lock; without its token nobody writes, and neither does another with it.
	onFar := far.as(t, "writer")
	onFar.status(http.StatusLocked, "PUT /dav/plan.odt stolen", "DELETE /dav/plan.odt")
	far.as(t, "other").under(token).status(http.StatusPreconditionFailed, "PUT /dav/plan.odt stolen")
	onFar.under(token).status(http.StatusNoContent, "PUT /dav/plan.odt text")
	assert.Equal(t, "text", string(editor.do("GET", contentOf("plan.odt"), nil).text))
	onFar.under(token).status(http.StatusOK, "LOCK /dav/plan.odt")
	writer.with("Lock-Token", "<"+token+">").status(http.StatusNoContent, "UNLOCK /dav/plan.odt")

	held := editor.lock("plan.odt")
	writer.status(http.StatusLocked, "PUT /dav/plan.odt stolen", "DELETE /dav/plan.odt", "LOCK /dav/plan.odt "+fmt.Sprintf(lockInfo, "exclusive"))
	seen := writer.with("Depth", "0").do("PROPFIND", "/dav/plan.odt", nil)
	assert.Contains(t, string(seen.text), "<D:owner>Bob</D:owner>")
	assert.NotContains(t, string(seen.text), "locktoken")
	require.Equal(t, http.StatusOK, editor.save("plan.odt", held, "from the web").status)
	assert.Equal(t, "from the web", string(writer.do("GET", "/dav/plan.odt", nil).text))

	var types []string
	for range 6 {
		types = append(types, strings.TrimPrefix(events.next()["type"].(string), "document."))
	}
	assert.Equal(t, []string{"locked", "updated", "updated", "unlocked", "locked", "updated"}, types)
}

// The lock of a program that sleeps ends. When the program wakes, its save is refused, and the next holder's text stays.
func TestDesktopProgramThatSleptOverwritesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	writer, editor := s.as(t, "writer"), s.as(t, "editor")
	token := writer.with("Timeout", "Second-1").davLock("/dav/r", "exclusive", "0")
	held := editor.do("POST", lockOf("r")+"?wait_ms=20000", nil)
	require.Equal(t, http.StatusOK, held.status, string(held.text))
	require.Equal(t, http.StatusOK, editor.save("r", held.token(), "later").status)
	writer.under(token).status(http.StatusPreconditionFailed, "PUT /dav/r old", "LOCK /dav/r", "DELETE /dav/r")
	writer.status(http.StatusLocked, "PUT /dav/r old")
	assert.Equal(t, "later", string(editor.do("GET", contentOf("r"), nil).text))
	editor.do("DELETE", lockOf("r"), nil)
	writer.status(http.StatusNoContent, "PUT /dav/r free")
}

// Locks on collections, with both depths, and shared ones.
func TestLocksOnCollections(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob, editor := s.as(t, "ann"), s.as(t, "bob"), s.as(t, "editor")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "MKCOL /dav/c/d", "PUT /dav/c/a a", "PUT /dav/c/d/b b", "PUT /dav/out out")

	deep := ann.davLock("/dav/c", "exclusive", "infinity")
	assertError(t, editor.do("POST", lockOf("c~.d~.b"), nil), http.StatusConflict, "already_locked")
	bob.status(http.StatusLocked, "PUT /dav/c/d/b no", "PUT /dav/c/new no", "MKCOL /dav/c/e", "DELETE /dav/c/a", "DELETE /dav/c")
	bob.to("/dav/c/a").status(http.StatusLocked, "COPY /dav/out", "MOVE /dav/out")
	bob.to("/dav/x").status(http.StatusLocked, "MOVE /dav/c/a", "MOVE /dav/c")
	bob.to("/dav/x").status(http.StatusCreated, "COPY /dav/c")
	ann.under(deep).status(http.StatusCreated, "PUT /dav/c/new yes")
	ann.under(deep).status(http.StatusNoContent, "PUT /dav/c/d/b yes", "DELETE /dav/c/d")
	ann.with("Lock-Token", "<"+deep+">").status(http.StatusNoContent, "UNLOCK /dav/c/a")

	// With depth 0, the members are locked as such: no new one, none fewer. Their contents are free.
	flat := ann.davLock("/dav/c", "exclusive", "0")
	bob.status(http.StatusLocked, "PUT /dav/c/more no", "MKCOL /dav/c/e", "DELETE /dav/c/a", "DELETE /dav/c",
		"PROPPATCH /dav/c "+setProperty, "LOCK /dav/c/unmapped "+fmt.Sprintf(lockInfo, "exclusive"))
	bob.status(http.StatusNoContent, "PUT /dav/c/a free")
	ann.under(flat).status(http.StatusMultiStatus, "PROPPATCH /dav/c "+setProperty)
	ann.with("If", "</dav/c/> (<"+flat+">)").status(http.StatusCreated, "PUT /dav/c/more yes")
	inside := bob.davLock("/dav/c/a", "exclusive", "0")
	ann.under(flat).status(http.StatusLocked, "DELETE /dav/c")
	bob.with("Lock-Token", "<"+inside+">").status(http.StatusNoContent, "UNLOCK /dav/c/a")
	ann.under(flat).status(http.StatusNoContent, "DELETE /dav/c")
	ann.with("Lock-Token", "<"+flat+">").status(http.StatusConflict, "UNLOCK /dav/c")

	// A lock does not move with its file, and a file that is moved onto a locked one takes the lock's token.
	moved := ann.davLock("/dav/out", "exclusive", "0")
	bob.status(http.StatusCreated, "PUT /dav/theirs theirs")
	theirs := bob.davLock("/dav/theirs", "exclusive", "0")
	ann.under(moved).to("/dav/theirs").status(http.StatusLocked, "MOVE /dav/out", "COPY /dav/out")
	ann.under(moved).to("/dav/there").status(http.StatusCreated, "MOVE /dav/out")
	bob.status(http.StatusNoContent, "PUT /dav/there free")
	bob.with("If", "</dav/theirs> (<"+theirs+">)").to("/dav/theirs").status(http.StatusNoContent, "COPY /dav/there")
	assert.Equal(t, "free", string(bob.do("GET", "/dav/theirs", nil).text))
	bob.to("/dav/out").status(http.StatusCreated, "MOVE /dav/there")

	one, two := ann.davLock("/dav/out", "shared", "0"), bob.davLock("/dav/out", "shared", "0")
	assertError(t, editor.do("POST", lockOf("out"), nil), http.StatusConflict, "already_locked")
	editor.status(http.StatusLocked, "PUT /dav/out no", "LOCK /dav/out "+fmt.Sprintf(lockInfo, "exclusive"))
	ann.under(one).status(http.StatusNoContent, "PUT /dav/out one")
	bob.under(two).status(http.StatusNoContent, "PUT /dav/out two")
	bob.under(one).status(http.StatusPreconditionFailed, "PUT /dav/out no")
}

const setProperty = `<D:propertyupdate xmlns:D="DAV:" xml:lang="en"><D:set><D:prop><color xmlns="urn:x"><b a="1">red &amp; blue</b></color></D:prop></D:set></D:propertyupdate>`

// Properties are kept over a restart. They go with the document, whoever deletes it.
func TestPropertiesAreKept(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/a a")
	ann.status(http.StatusMultiStatus, "PROPPATCH /dav/c/a "+setProperty)
	ann.to("/dav/c/b").status(http.StatusCreated, "COPY /dav/c/a")
	far := s.another(t, nil).as(t, "ann").with("Depth", "1")
	list := string(far.do("PROPFIND", "/dav/c", `<D:propfind xmlns:D="DAV:"><D:prop><color xmlns="urn:x"/></D:prop></D:propfind>`).text)
	kept := regexp.MustCompile(`<color xmlns="urn:x" xml:lang="en"><b xmlns="urn:x" a="1">red &amp; blue</b></color>`)
	assert.Len(t, kept.FindAllString(list, -1), 2, list)

	protected := ann.do("PROPPATCH", "/dav/c/a", strings.Replace(setProperty, `<color xmlns="urn:x">`, `<D:getetag/><color xmlns="urn:y">`, 1))
	assert.Contains(t, string(protected.text), "403 Forbidden")
	assert.Contains(t, string(protected.text), "424 Failed Dependency")
	tooLarge := strings.Replace(setProperty, "red", strings.Repeat("r", 60<<10), 1)
	ann.status(http.StatusMultiStatus, "PROPPATCH /dav/c/b "+tooLarge)
	ann.status(http.StatusInsufficientStorage, "PROPPATCH /dav/c/b "+strings.ReplaceAll(tooLarge, "urn:x", "urn:z"))

	token := ann.lock("c~.a")
	require.Equal(t, http.StatusOK, ann.with(remote.HeaderToken, fmt.Sprint(token)).do("DELETE", "/api/documents/c~.a", nil).status)
	require.Equal(t, http.StatusOK, ann.save("c~.a", token, "anew").status)
	assert.NotContains(t, string(far.do("PROPFIND", "/dav/c/a", nil).text), "color")
}

// Programs without a lock that change the same file at once wait for each other. If-Match, or an entity tag in If,
// decides which one has seen the latest text, so no change is lost.
func TestChangesWithoutALockAreNotLost(t *testing.T) {
	t.Parallel()
	s := startWith(t, servertest.Unlimited(t)) // the writers ask again and again
	editor := s.as(t, "editor")
	s.as(t, "w").status(http.StatusCreated, "PUT /dav/r -")
	var running sync.WaitGroup
	for i := range 3 {
		running.Go(func() {
			writer := s.as(t, fmt.Sprint("writer", i))
			for n := 0; n < 5; {
				now := writer.do("GET", "/dav/r", nil)
				tagged := writer.with("If-Match", now.header.Get("ETag"))
				if n%2 == 1 {
					tagged = writer.with("If", "(["+now.header.Get("ETag")+"])")
				}
				a := tagged.do("PUT", "/dav/r", append(now.text, 'x'))
				if a.status == http.StatusNoContent {
					n++
				} else if a.status != http.StatusLocked {
					assert.Equal(t, http.StatusPreconditionFailed, a.status, string(a.text))
				}
			}
		})
	}
	running.Go(func() {
		for n := 0; n < 5; n++ {
			held := editor.do("POST", lockOf("r")+"?wait_ms=60000", nil)
			if !assert.Equal(t, http.StatusOK, held.status) {
				return
			}
			now := editor.do("GET", contentOf("r"), nil)
			assert.Equal(t, http.StatusOK, editor.save("r", held.token(), string(now.text)+"x").status)
			editor.do("DELETE", lockOf("r"), nil)
		}
	})
	running.Wait()
	assert.Equal(t, "-"+strings.Repeat("x", 20), string(editor.do("GET", contentOf("r"), nil).text))
	require.Eventually(t, func() bool { return editor.do("GET", lockOf("r"), nil).body["is_locked"] == false }, 10*time.Second, 10*time.Millisecond)
}

func TestNamesInURLs(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxContent = 1000 })
	ann := s.as(t, "ann")
	for path, id := range map[string]string{
		"/dav/plain.txt": "plain.txt", "/dav/My%20plan%20%E2%82%AC.odt": "My~20plan~20~E2~82~AC.odt", "/dav/a~b": "a~b",
	} {
		ann.status(http.StatusCreated, "PUT "+path+" text")
		assert.Equal(t, "text", string(ann.do("GET", contentOf(id), nil).text), id)
		assert.Contains(t, string(ann.with("Depth", "1").do("PROPFIND", "/dav/", nil).text), "<D:href>"+path+"</D:href>")
	}
	ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/50%25%20%E3%80%80 text")
	assert.Equal(t, "text", string(ann.do("GET", contentOf("c~.50~25~20~E3~80~80"), nil).text))
	for _, name := range []string{"c/..", "c/%2E%2e/plain.txt", "..%2Fetc", "a%2Fb", "a%5Cb", "a%00b", "%E2%80%AEtxt.exe", "%ff", "c//a",
		"c/%2e", strings.Repeat("x", 129), "c/" + strings.Repeat("%20", 60), "My~20plan", "x~.y", "c/a%0d%0ab"} {
		ann.status(http.StatusForbidden, "PUT /dav/"+name+" text", "MKCOL /dav/"+name, "GET /dav/"+name)
		assert.Equal(t, http.StatusForbidden, ann.to("/dav/"+name).do("COPY", "/dav/plain.txt", nil).status, name)
	}
	ann.with("Destination", "http://elsewhere.example/dav/x").status(http.StatusBadGateway, "COPY /dav/plain.txt", "MOVE /dav/plain.txt")
	ann.with("Destination", "/api/x").status(http.StatusBadGateway, "COPY /dav/plain.txt")
	ann.to("/dav/c/d/e").status(http.StatusConflict, "COPY /dav/plain.txt")
	ann.to("/dav/c/d").status(http.StatusForbidden, "COPY /dav/c", "MOVE /dav/c")
	ann.to("/dav/plain.txt").with("Overwrite", "F").status(http.StatusPreconditionFailed, "COPY /dav/a~b")
	ann.to("/dav/").status(http.StatusForbidden, "COPY /dav/c", "MOVE /dav/plain.txt")
	ann.status(http.StatusForbidden, "DELETE /dav/")

	// A member that only the API has made shows its collection, which stays when the member goes.
	token := ann.lock("only~.member")
	require.Equal(t, http.StatusOK, ann.save("only~.member", token, "text").status)
	ann.do("DELETE", lockOf("only~.member"), nil)
	ann.status(http.StatusNoContent, "DELETE /dav/only/member")
	ann.with("Depth", "0").status(http.StatusMultiStatus, "PROPFIND /dav/only/")
	ann.status(http.StatusNoContent, "DELETE /dav/only")
	ann.status(http.StatusNotFound, "PROPFIND /dav/only")
	ann.status(http.StatusRequestEntityTooLarge, "PUT /dav/large "+strings.Repeat("x", 1001))
}

func TestDAVRefusesWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "PUT /dav/r text")
	endless := ann.with("Depth", "infinity").do("PROPFIND", "/dav/", nil)
	assert.Equal(t, http.StatusForbidden, endless.status)
	assert.Contains(t, string(endless.text), "propfind-finite-depth")
	for _, body := range []string{
		`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><D:propfind xmlns:D="DAV:"><D:prop><x>&b;</x></D:prop></D:propfind>`,
		`<D:propfind xmlns:D="DAV:"><D:prop>` + strings.Repeat("<a>", 1000) + strings.Repeat("</a>", 1000) + `</D:prop></D:propfind>`,
		`<D:propfind xmlns:D="DAV:"><D:prop><e:x/></D:prop></D:propfind>`, `<propfind/>`, `<D:propfind xmlns:D="DAV:">`, `text`,
		`<D:propfind xmlns:D="DAV:"><D:prop/><D:allprop/></D:propfind>`,
		`<D:propfind xmlns:D="DAV:"><D:prop>` + strings.Repeat("<D:x/>", 201) + `</D:prop></D:propfind>`,
	} {
		ann.with("Depth", "0").status(http.StatusBadRequest, "PROPFIND /dav/r "+body)
	}
	ann.with("Depth", "0").status(http.StatusRequestEntityTooLarge, "PROPFIND /dav/r <a>"+strings.Repeat("x", 64<<10))
	for _, header := range []string{"(", "()", "(<a>", "<a>", "text", "(Not)", strings.Repeat("(<a>) ", 3000), strings.Repeat("(<a>) ", 300)} {
		ann.with("If", header).status(http.StatusBadRequest, "PUT /dav/r x", "GET /dav/r")
	}
	ann.with("If", "(<DAV:no-lock>)").status(http.StatusPreconditionFailed, "PUT /dav/r x")
	ann.with("If", `</dav/other> (Not <DAV:no-lock>)`).status(http.StatusNoContent, "PUT /dav/r x")
	ann.with("If", `(["wrong"])`).status(http.StatusPreconditionFailed, "PUT /dav/r x")
	ann.with("Content-Range", "bytes 0-1/2").status(http.StatusBadRequest, "PUT /dav/r x")
	ann.status(http.StatusBadRequest, "UNLOCK /dav/r", "LOCK /dav/r")
	ann.status(http.StatusMethodNotAllowed, "POST /dav/r x", "PATCH /dav/r x", "GET /dav/")
	assert.Equal(t, "x", string(ann.do("GET", "/dav/r", nil).text))
}

// One program sends several changes at once, as mounted folders do. They wait for each other, and none is an error that a
// program would take for a lock of somebody else.
func TestParallelChangesOfOneProgram(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c")
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for n := range 5 {
				assert.Less(t, ann.do("PUT", "/dav/c/same", fmt.Sprint(i, n)).status, 300)
				assert.Equal(t, http.StatusCreated, ann.do("PUT", fmt.Sprintf("/dav/c/own-%d-%d", i, n), "text").status)
			}
		})
	}
	running.Wait()
	// Two moves in opposite directions: the later one moves back what the earlier one has moved, or finds nothing.
	for range 10 {
		ann.status(http.StatusNoContent, "PUT /dav/c/own-0-0 one", "PUT /dav/c/own-1-0 two")
		var there, back answer
		running.Go(func() { there = ann.to("/dav/c/own-1-0").do("MOVE", "/dav/c/own-0-0", nil) })
		running.Go(func() { back = ann.to("/dav/c/own-0-0").do("MOVE", "/dav/c/own-1-0", nil) })
		running.Wait()
		var texts []string
		for _, path := range []string{"/dav/c/own-0-0", "/dav/c/own-1-0"} {
			if a := ann.do("GET", path, nil); a.status == http.StatusOK {
				texts = append(texts, string(a.text))
			}
		}
		assert.Len(t, texts, 1, "%s %s", there.text, back.text)
		assert.Less(t, min(there.status, back.status), 300)
		assert.NotEqual(t, http.StatusLocked, max(there.status, back.status))
		ann.do("PUT", "/dav/c/own-0-0", "one")
		ann.do("PUT", "/dav/c/own-1-0", "two")
	}
}
