package kv

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// MaxOps is the maximum number of conditions, and of operations, in one transaction. It is etcd's default, so an
	// external cluster needs no setting.
	MaxOps = 128
	// MaxRequest is the maximum size of one transaction in bytes. It leaves some margin below etcd's default of 1.5
	// MiB. Callers split larger values into pieces: larger requests would delay all others in the raft log.
	MaxRequest = 1<<20 + 256<<10
)

var (
	// ErrCompacted means that the requested history has been compacted.
	ErrCompacted = errors.New("the revision asked for has been compacted")
	// ErrUnavailable means that the store cannot be reached or currently has no leader.
	ErrUnavailable = errors.New("the store is unavailable")
	// ErrTooLarge means that a transaction exceeds [MaxOps] or [MaxRequest].
	ErrTooLarge = errors.New("the transaction is too large")
	// ErrFull means that the store has no space left. The outcome of a transaction is unknown, as after any error: etcd
	// carries out the first one that exceeds its quota.
	ErrFull = errors.New("the store is full")
	// ErrReserved is an ErrFull after which nothing has changed: the remaining space is reserved for the locks that exist.
	ErrReserved = fmt.Errorf("%w, and nothing was changed", ErrFull)
	// ErrInUse means that another process has the data directory open.
	ErrInUse = errors.New("the data directory is in use")
	// ErrShared means that the cluster has keys of others too: the store has a [Config.Prefix].
	ErrShared = errors.New("the cluster has keys of others too")
)

// Config says where the store keeps its keys. Exactly one of DataDir and Endpoints is set.
type Config struct {
	// DataDir is the directory for the files of an etcd that runs in this process. It is created if needed.
	DataDir string
	// Endpoints are the addresses of an external cluster: host:port, URLs, or unix:/path.
	Endpoints []string
	// TLS encrypts the connections to Endpoints. The certificate is for clusters that ask for one. User and Password
	// are for clusters that have users.
	TLS            TLSFiles
	User, Password string
	// Prefix is put before every key in the external cluster, followed by a slash unless it ends with one. Stores with
	// different prefixes share nothing but the cluster, unless one prefix is the beginning of a key of another store.
	Prefix string

	// History is the minimum time for which old revisions can still be read and watched; embedded only. Zero means 5
	// minutes.
	History time.Duration
	// Quota is the maximum size of the embedded store in bytes; zero means 8 GiB. See [Store.Space].
	Quota int64
	// Member makes the embedded etcd a member of a cluster. The zero value is a cluster of one, which listens only on
	// a socket in its data directory.
	Member Member
	// Timeout limits every read and commit that has no earlier deadline. Zero means 5 seconds.
	Timeout time.Duration
	// Log receives etcd's log messages; nil discards them.
	Log *slog.Logger

	restoring bool // opens a directory while it is restored
}

// Member describes an embedded etcd in a cluster of several.
type Member struct {
	// Name is this member's name in the cluster. Empty means "holdfast".
	Name string
	// PeerURL is the address of this member for the other members, and ClientURL its address for clients, as
	// http://host:port.
	PeerURL, ClientURL string
	// PeerAddr and ClientAddr are where this member listens for these URLs, as ip:port. Empty means the host and port of
	// the URL, which must be an IP address then.
	PeerAddr, ClientAddr string
	// Join are client addresses of a running cluster that a member with an empty data directory joins. A member that
	// has joined before ignores them. Each member ignores its own ClientURL, so all may have the same list: a member
	// whose list has only its own address founds the cluster.
	Join []string
	// Replace is the PeerURL of a member whose files are lost. This member takes its place when it joins. A member that
	// joins with the PeerURL of a former member replaces it in any case.
	Replace string
	// TLS encrypts the connections between members, to ClientURL and to Join. All three files are needed: each member
	// shows a certificate of the authority to each other one. The URLs begin with https then.
	TLS TLSFiles
}

const (
	defaultHistory = 5 * time.Minute
	defaultQuota   = 8 << 30
	defaultTimeout = 5 * time.Second
	defaultName    = "holdfast"
	maxPrefix      = 128
)

func (c Config) withDefaults() (Config, error) {
	if (c.DataDir == "") == (len(c.Endpoints) == 0) {
		return c, errors.New("kv: set either a data directory or the endpoints of a cluster")
	}
	if c.Prefix != "" {
		if c.DataDir != "" || len(c.Prefix) > maxPrefix || strings.ContainsFunc(c.Prefix, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return c, fmt.Errorf("kv: a prefix has up to %d visible ASCII characters, and goes with endpoints only", maxPrefix)
		}
		c.Prefix = strings.TrimSuffix(c.Prefix, "/") + "/"
	}
	if c.History == 0 {
		c.History = defaultHistory
	}
	if c.Quota == 0 {
		c.Quota = defaultQuota
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Member.Name == "" {
		c.Member.Name = defaultName
	}
	own := c.Member.ClientURL
	c.Member.Join = slices.DeleteFunc(slices.Clone(c.Member.Join), func(at string) bool { return at == own })
	if c.Member.Name == defaultName && len(c.Member.Join) > 0 {
		c.Member.Name += "-" + c.Member.PeerURL // no two members may have the same name
	}
	if err := c.Member.check(); err != nil {
		return c, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func (m Member) check() error {
	scheme := "http"
	if m.TLS.used() {
		scheme = "https"
		if m.TLS.Cert == "" || m.TLS.Key == "" || m.TLS.CA == "" {
			return errors.New("members need a certificate, its key and the authority of all members' certificates")
		}
		if err := m.TLS.check(time.Now()); err != nil {
			return err
		}
	}
	for _, text := range append([]string{m.PeerURL, m.ClientURL, m.Replace}, m.Join...) {
		if u, err := url.Parse(text); text != "" && (err != nil || u.Scheme != scheme || u.Port() == "") {
			return fmt.Errorf("%q is not a URL of a member, such as %s://10.0.0.1:2380 (with certificates https, without http)", text, scheme)
		}
	}
	for _, text := range []string{m.PeerAddr, m.ClientAddr} {
		if _, err := netip.ParseAddrPort(text); text != "" && err != nil {
			return fmt.Errorf("%q is not an address to listen on, such as 0.0.0.0:2380", text)
		}
	}
	return nil
}
