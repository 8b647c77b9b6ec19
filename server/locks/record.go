package locks

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/kv"
)

const (
	prefix      = "locks/"
	claimPrefix = prefix + "claim/"
	beatPrefix  = prefix + "beat/"
	waitPrefix  = prefix + "wait/"
	stubPrefix  = prefix + "stub/"
	gonePrefix  = prefix + "gone/"
	askedPrefix = prefix + "asked/"

	anyMark       = "!" // begins each of them
	exclusiveMark = "!x"
	sharedMark    = "!s"
	slotMark      = exclusiveMark + "#"
)

// Grants on independent places may share a revision, and so a token. The grants of one holder do not, so that a browser
// never has two leases with one token. The places of two tickets never share a revision, so the queue has one order.
const holderApart, lineApart = "holder/", "line"

// claim is the value of every claim key of a lease. While a request waits, it is also part of its ticket.
type claim struct {
	Lease   string `json:"lease"`
	Holder  string `json:"holder"`
	Name    string `json:"name"`
	Mode    Mode   `json:"mode"`
	Slot    int    `json:"slot,omitempty"`
	Slots   int    `json:"slots,omitempty"`
	Paths   []Path `json:"paths"`
	Locked  int64  `json:"locked"` // milliseconds since 1970, like all times in the store
	TTL     int64  `json:"ttl"`
	Ticket  string `json:"ticket,omitempty"`  // of the request
	Exact   bool   `json:"exact,omitempty"`   // see [Request.Exact]
	Browser string `json:"browser,omitempty"` // see [Request.Browser]
	User    string `json:"user,omitempty"`    // see [Request.User]
	Note    string `json:"note,omitempty"`
}

// owner is the claim's owner in the graph. Browsers with one secret wait for each other there.
func (c claim) owner() string { return c.Holder + "/" + c.Browser }

func newClaim(r Request, at time.Time) claim {
	return claim{
		Holder: r.Holder.ID, Name: r.Holder.Name, Mode: r.Mode, Slots: r.Slots, Paths: r.Paths,
		Locked: at.UnixMilli(), TTL: r.TTL.Milliseconds(), Ticket: r.Ticket, Exact: r.Exact, Browser: r.Browser, Note: r.Note,
		User: r.User, Lease: newID(),
	}
}

func newID() string {
	random := make([]byte, 12)
	rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// node is the key prefix of a path. All keys below the path begin with it.
func node(under string, p Path) string {
	return string(append(p.append(append(make([]byte, 0, usualKey), under...)), '/'))
}

func (c claim) mark() string {
	switch {
	case c.Mode == Shared:
		return sharedMark + c.Lease
	case c.Slots > 1:
		return c.slotsMark() + strconv.Itoa(c.Slot)
	}
	return exclusiveMark
}

// slotsMark is the prefix of the marks of all slots of a place with this number of slots. Different numbers exclude
// each other.
func (c claim) slotsMark() string { return slotMark + strconv.Itoa(c.Slots) + "#" }

// sharesPlacesWith reports whether two claims conflict only over slots: both want slots, of the same number, and no
// path of one is above or below a path of the other.
func (c claim) sharesPlacesWith(other claim) bool {
	if c.Mode != Exclusive || other.Mode != Exclusive || c.Slots <= 1 || other.Slots != c.Slots {
		return false
	}
	for _, p := range c.Paths {
		for _, q := range other.Paths {
			if len(p) != len(q) && (p.covers(q) || q.covers(p)) {
				return false
			}
		}
	}
	return true
}

// keys returns the keys of the claims in the global order. The first one is the lease's home.
func (c claim) keys() []string {
	list := make([]string, len(c.Paths))
	for i, p := range c.Paths {
		list[i] = node(claimPrefix, p) + c.mark()
	}
	return list
}

// home is the first of the keys.
func (c claim) home() string { return node(claimPrefix, c.Paths[0]) + c.mark() }

// beatKey is the key of the lease's heartbeat.
func (c claim) beatKey() string { return beatOf(c.home()) }

func beatOf(home string) string { return beatPrefix + strings.TrimPrefix(home, claimPrefix) }

func claimOf(beat string) string { return claimPrefix + strings.TrimPrefix(beat, beatPrefix) }

func (c claim) encode() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers
	}
	return text
}

func decodeClaim(e kv.Entry) (claim, bool) {
	var c claim
	err := json.Unmarshal(e.Value, &c)
	return c, err == nil && len(c.Paths) > 0
}

// publicID is the lease's id for its holder: the lease's own name and its home.
func (c claim) publicID() string {
	home := strings.TrimPrefix(c.home(), claimPrefix)
	return c.Lease + "." + base64.RawURLEncoding.EncodeToString([]byte(home))
}

// parseID splits an id from publicID. ok is false for any other text.
func parseID(id string) (lease, home string, ok bool) {
	lease, encoded, ok := strings.Cut(id, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	return lease, claimPrefix + string(decoded), ok && err == nil && len(decoded) > 0
}

// name is the lease's own name.
func (l Lease) name() string {
	name, _, _ := strings.Cut(l.ID, ".")
	return name
}

func (c claim) lease(token int64, expires time.Time) Lease {
	return Lease{
		ID: c.publicID(), Holder: Holder{c.Holder, c.Name}, Paths: c.Paths, Mode: c.Mode, Slots: c.Slots, Slot: c.Slot,
		Token: token, LockedAt: time.UnixMilli(c.Locked), ExpiresAt: expires, Note: c.Note,
	}
}

func (c claim) ttl() time.Duration { return time.Duration(c.TTL) * time.Millisecond }

func encodeBeat(expires time.Time) []byte { return strconv.AppendInt(nil, expires.UnixMilli(), 10) }

func decodeBeat(e kv.Entry) (time.Time, bool) {
	ms, err := strconv.ParseInt(string(e.Value), 10, 64)
	return time.UnixMilli(ms), err == nil
}
