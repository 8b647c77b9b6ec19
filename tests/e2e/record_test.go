package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// table defines table(root), the text of a project's `.lock` file as any script of the origin can read it.
const table = endings.LockFile + `; globalThis.table = root => whenPossible(root, async file => (await file.getFile()).text())`

// record is a lease in the newest version of the table.
type record struct {
	resource, lease, owner, name    string
	token, acquired, expires, ttlMs int64
}

// records reads the leases from a table's text. The newest version has the highest number.
func records(t *testing.T, text string) (found []record) {
	t.Helper()
	newest, lines := int64(-1), ""
	for _, version := range strings.Split(text, "holdfast-lock 1 number=")[1:] {
		var number int64
		var size int
		_, err := fmt.Sscanf(version, "%d bytes=%d ", &number, &size)
		require.NoError(t, err)
		if _, rest, _ := strings.Cut(version, "\n"); number > newest {
			newest, lines = number, rest[:size]
		}
	}
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) != 9 || words[0] != "lease" {
			continue
		}
		var r record
		for i, to := range []*string{&r.resource, &r.lease, &r.owner, &r.name} {
			text, err := strconv.Unquote(words[i+1])
			require.NoError(t, err)
			*to = text
		}
		for i, to := range []*int64{&r.token, &r.acquired, &r.expires, &r.ttlMs} {
			n, err := strconv.ParseInt(words[i+5], 10, 64)
			require.NoError(t, err)
			*to = n
		}
		found = append(found, r)
	}
	return found
}

// A lease over Web Locks has its record in the file before lock:acquired fires. Each renewal moves its expiry, and
// the release removes it.
func TestRecordBesideAWebLock(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "record-" + host
		holder, reader := w.tab(t, at(host, root)), w.tab(t, "")
		reader.MustEval(table, nil)
		holder.MustEval(table+`
			globalThis.seen = new Promise(done => hf.addEventListener('lock:acquired', () => done(table('`+root+`')), {once: true}))
			lease = await hf.acquireProjectLock({heartbeatIntervalMs: 500, ttlMs: 5000})`, nil)
		first := records(t, browser.Get[string](holder, "await seen"))
		require.Len(t, first, 1)
		assert.Equal(t, record{"holdfast:" + root, browser.Get[string](holder, "lease.leaseId"), browser.Get[string](holder, "hf.ownerId"), "Ann",
			browser.Get[int64](holder, "lease.token"), browser.Get[int64](holder, "lease.acquiredAt"), browser.Get[int64](holder, "lease.expiresAt"), 5000}, first[0])
		assert.Equal(t, "web-lock", browser.Get[string](holder, "lease.strategy"))

		holder.WaitFor("count('renewed') >= 2", browser.Limit)
		renewed := records(t, browser.Get[string](reader, "await table('"+root+"')"))
		require.Len(t, renewed, 1)
		assert.GreaterOrEqual(t, renewed[0].expires, first[0].expires+500)
		renewed[0].expires = first[0].expires
		assert.Equal(t, first[0], renewed[0], "the same lease")

		holder.MustEval("await lease.release()", nil)
		assert.Empty(t, records(t, browser.Get[string](reader, "await table('"+root+"')")))
		holder.MustEval("await hf.close()", nil)
		holder.Quiet()
		reader.Quiet()
	})
}

// The token is counted in the record: it rises even after the clock was set back.
func TestTokensAreCountedInTheRecord(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, at("page", "counted"))
	before := browser.Get[int64](tab, "lease = await hf.acquireProjectLock(); await lease.release(); lease.token")
	tab.MustEval("const real = Date.now; Date.now = () => real() - 3600_000; await new Promise(done => setTimeout(done, 20))", nil)
	after := browser.Get[int64](tab, "lease = await hf.acquireProjectLock(); await lease.release(); lease.token")
	assert.Greater(t, after, before)
	tab.MustEval("await hf.close()", nil)
	tab.Quiet()
}

// A waiter behind a suspended holder takes over when the holder's record has expired and nobody answers. The holder
// learns this when it resumes, before it may write.
func TestSuspendedHolderIsTakenOver(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "suspended-" + host
		holder, waiter := w.tab(t, at(host, root)), w.tab(t, at(host, root))
		holder.MustEval("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 1500, ttlMs: 3000})", nil)
		waiter.MustEval("globalThis.got = 0; hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => { got = now(); lease = l }); 1", nil)
		waiter.WaitFor("types().includes('waiting') && (await locks()).pending === 1", browser.Limit)
		before := browser.Get[int64](holder, "lease.token")
		// Not while the holder has the file open, which TestSuspendedInAStep tests: the next step is 1.5 s away.
		holder.MustEval("await new Promise(done => hf.addEventListener('lock:renewed', done, {once: true})); null", nil)
		waiter.MustEval(table+"; await fileClosed('"+root+"')", nil)
		since := waiter.Now()
		holder.Suspend()
		waiter.WaitFor("got", browser.Limit)
		latency := browser.Get[float64](waiter, "got") - since
		t.Logf("taken over %.0f ms after the holder stood still", latency)
		assert.Greater(t, latency, 2000.0, "the waiter does not get the lock before the TTL, which begins with the last renewal")
		assert.Less(t, latency, 3000+browser.Prompt, "the waiter gets the lock soon after the TTL")
		assert.Greater(t, browser.Get[int64](waiter, "lease.token"), before)
		holder.Continue()
		holder.WaitFor("lease.signal.aborted", browser.Limit)
		assert.Contains(t, []string{"lease-stale", "lease-lost"}, browser.Get[string](holder, "lease.signal.reason.code"))
		waiter.MustEval("await lease.release(); await hf.close()", nil)
		holder.MustEval("await hf.close()", nil)
		waiter.Quiet()
		holder.Quiet()
	})
}

// A Web Lock needs no file: if files are refused, the lease works without a record and a warning reports that.
func TestWebLockWithoutARecord(t *testing.T) {
	t.Parallel()
	const private = "StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('planted', 'SecurityError'));"
	w := world{browser.Start(t, quick), browser.Serve(t, served(t, private))}
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, at(host, "recordless-"+host))
		tab.MustEval("lease = await hf.acquireProjectLock(); await lease.release(); await hf.close()", nil)
		assert.Equal(t, []string{"attempt", "warning", "acquired", "renew-scheduled", "release-requested", "released"}, browser.Get[[]string](tab, "types()"))
		assert.Equal(t, "fallback-degraded", browser.Get[string](tab, "events[1].warning"))
		assert.Contains(t, browser.Get[string](tab, "events[1].detail"), "private windows")
		tab.Quiet()
	})
}
