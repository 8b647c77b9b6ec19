package kv

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"
)

const (
	// MaxOps is how many conditions, and how many operations, one transaction may hold: etcd's default, so that
	// an external cluster needs no setting.
	MaxOps = 128
	// MaxRequest is how many bytes one transaction may hold, with some room left under etcd's default of 1.5 MiB.
	// Whoever stores more cuts it into pieces: larger requests would delay every other one in the raft log.
	MaxRequest = 1<<20 + 256<<10
)

var (
	// ErrCompacted means that the history asked for has been compacted away.
	ErrCompacted = errors.New("the revision asked for has been compacted")
	// ErrUnavailable means that the store cannot be reached or has no leader at the moment.
	ErrUnavailable = errors.New("the store is unavailable")
	// ErrTooLarge means that a transaction holds more than [MaxOps] or [MaxRequest].
	ErrTooLarge = errors.New("the transaction is too large")
	// ErrFull means that the store has no room. Nothing was written.
	ErrFull = errors.New("the store is full")
	// ErrInUse means that another process has the data directory open.
	ErrInUse = errors.New("the data directory is in use")
)

// Config says where the keys are kept. Exactly one of DataDir and Endpoints is set.
type Config struct {
	// DataDir starts an etcd in this process that keeps its files here. The directory is made if need be.
	DataDir string
	// Endpoints are the addresses of an external cluster: host:port, URLs, or unix:/path.
	Endpoints []string

	// History is how long old revisions can still be read and watched, at least; embedded only. Zero is 5 minutes.
	History time.Duration
	// Quota is how many bytes the embedded store may use; zero is 8 GiB. See [Store.Room].
	Quota int64
	// Member puts the embedded etcd into a cluster of several; the zero value is a cluster of one, which
	// listens on nothing but a socket in its data directory.
	Member Member
	// Timeout bounds every read and commit that has no earlier deadline. Zero is 5 seconds.
	Timeout time.Duration
	// Log gets what etcd has to say; nil is silence.
	Log *slog.Logger
}

// Member is an embedded etcd's place in a cluster of several.
type Member struct {
	// Name is what the other members call this one. Empty is "holdfast".
	Name string
	// PeerURL is where the other members reach this one, and ClientURL where clients do, as http://ip:port.
	PeerURL, ClientURL string
	// Join are client addresses of a running cluster that an empty data directory is to join; one that has
	// joined before ignores it.
	Join []string
}

const (
	defaultHistory = 5 * time.Minute
	defaultQuota   = 8 << 30
	defaultTimeout = 5 * time.Second
	defaultName    = "holdfast"
)

func (c Config) withDefaults() (Config, error) {
	if (c.DataDir == "") == (len(c.Endpoints) == 0) {
		return c, errors.New("kv: set either a data directory or the endpoints of a cluster")
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
	if c.Member.Name == defaultName && len(c.Member.Join) > 0 {
		c.Member.Name += "-" + c.Member.PeerURL // no two members may have one name
	}
	for _, text := range []string{c.Member.PeerURL, c.Member.ClientURL} {
		if u, err := url.Parse(text); text != "" && (err != nil || u.Scheme != "http" || u.Port() == "") {
			return c, fmt.Errorf("kv: %q is not a URL of a member, as http://10.0.0.1:2380", text)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
