package server

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// Config has all settings of the server. [DefaultConfig] has the defaults, and [Config.Flags] the flags.
type Config struct {
	// DataDir is the folder of the embedded etcd. Etcd are the endpoints of an external cluster, which replaces the
	// embedded etcd if there are any.
	DataDir string
	Etcd    []string
	// Blobs is the place of the contents: a directory, or a bucket as s3://bucket/prefix?endpoint=https://host. Empty is a directory in
	// DataDir. Servers that share a store share the blobs too.
	Blobs string
	// Keep is the number of generations that are kept of each document, MaxContent the maximum size of a content in bytes, and Quota
	// the maximum size of the store in bytes.
	Keep       int
	MaxContent int64
	Quota      int64
	// History is the time for which the embedded etcd keeps earlier revisions, for clients that resume.
	History time.Duration

	// The embedded etcd is a member of a cluster of several with these, see [kv.Member].
	Name, PeerURL, ClientURL, PeerAddr, ClientAddr, Replace string
	Join                                                    []string
	// PeerTLS encrypts the connections between members, and EtcdTLS the connections to the external cluster.
	PeerTLS, EtcdTLS kv.TLSFiles
	// EtcdUser is the user of the external cluster. The password is in the file EtcdPassword, or in the environment
	// variable [PasswordVariable].
	EtcdUser, EtcdPassword string
	// Prefix is put before every key in the external cluster, so that several deployments can share it.
	Prefix string

	// Origins are further origins whose pages may use the API.
	Origins []string
	// UserHeader and GroupsHeader are headers that a trusted proxy sets to the user's name and groups.
	UserHeader, GroupsHeader string
	// APIKeys is a file of API keys, see [users.ParseKeys].
	APIKeys string
	// Policy is a file of rules, see package policy. Empty allows everybody to read, lock and write. With users, it allows that to those who
	// have signed in.
	Policy string
	// OIDCIssuer is the URL of an OpenID Connect provider whose tokens for OIDCAudience name users; OIDCName and OIDCGroups are the claims
	// with the name and the groups.
	OIDCIssuer, OIDCAudience, OIDCName, OIDCGroups string
	// OIDCSecret is a file with the client secret of OIDCAudience for the provider; empty is none.
	OIDCSecret string
	// Audit is the file of the audit log, see package audit.
	Audit string
	// SecureCookie is for a proxy that ends HTTPS.
	SecureCookie bool

	// LockTTL is the time for which a document's lock lasts without a heartbeat, Sweep the pause between two sweeps of everything,
	// and MaxWait the longest wait_ms.
	LockTTL, Sweep, MaxWait time.Duration
	// Ping is the pause between pings on a socket.
	Ping time.Duration
	// InstanceTTL is the time for which the waiters of a server that died keep their positions in the queue.
	InstanceTTL time.Duration

	// The times of rooms. A closed socket keeps its place for RoomGrace. A room is closed after it was idle for RoomIdle. RoomScan is the pause
	// between two searches for both. An instance gives a sign of life every RoomHeartbeat, and counts as dead after RoomDead without one.
	RoomGrace, RoomIdle, RoomScan, RoomHeartbeat, RoomDead time.Duration

	// Hosts are the names that clients may call this server by, besides those of loopback addresses; "*" is any.
	Hosts []string
	// TrustedProxies are addresses and ranges whose X-Forwarded-For is believed.
	TrustedProxies []string

	// Rate and Burst bound the requests of one session. NewRate and NewBurst bound the sessions of one address that the
	// server has not seen lately. AddressRate and AddressBurst bound all requests of one address. A rate of 0 is no bound.
	// UserRate and UserBurst bound the requests of one user who has signed in.
	Rate, NewRate, AddressRate, UserRate     float64
	Burst, NewBurst, AddressBurst, UserBurst int
	// MaxLocks, MaxWaiting and MaxTickets limit the locks, waiting requests and tickets of one session. MaxDocuments limits the
	// existing documents that it has created. MaxSockets limits the sockets of one address. 0 is no limit.
	MaxLocks, MaxWaiting, MaxTickets, MaxDocuments, MaxSockets int
	// LockAll lets anybody lock all documents at once.
	LockAll bool

	// AccessLog logs each request, with an id.
	AccessLog bool
	// Traces is the URL of an OpenTelemetry collector that gets the traces of requests. Empty is none.
	Traces string
	// MetricsApart leaves /metrics out of [Server.Handler]: another address has [Server.Metrics].
	MetricsApart bool
	// Drain is the time for which a server that stops still takes connections, while /readyz fails. It is part of StopLimit, at most half of it.
	Drain time.Duration
	// HeaderLimit, ReadLimit and WriteLimit are the maximum times of a request's header, the whole request and the response.
	// StopLimit is the maximum time of a graceful stop.
	HeaderLimit, ReadLimit, WriteLimit, StopLimit time.Duration

	Log *slog.Logger
}

// PasswordVariable has the password of EtcdUser. There is no flag for it: everybody on the machine can read command lines.
const PasswordVariable = "HOLDFAST_ETCD_PASSWORD"

// minQuota leaves room for some thousands of locks.
const minQuota = 16 << 20

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Keep: 20, MaxContent: 8 << 20, Quota: 8 << 30,
		DataDir: "holdfast-data", History: 5 * time.Minute, Name: "holdfast",
		OIDCGroups: "groups",
		LockTTL:    30 * time.Second, Sweep: time.Minute, MaxWait: time.Minute, Ping: 20 * time.Second,
		InstanceTTL: 5 * time.Second,
		RoomGrace:   2 * time.Second, RoomIdle: 30 * time.Minute, RoomScan: 5 * time.Minute,
		RoomHeartbeat: 5 * time.Second, RoomDead: 20 * time.Second,
		Rate: 100, Burst: 200, NewRate: 100, NewBurst: 2000, AddressRate: 1000, AddressBurst: 5000, UserRate: 300, UserBurst: 1000,
		MaxLocks: 20_000, MaxWaiting: 1000, MaxTickets: 20_000, MaxDocuments: 20_000, MaxSockets: 10_000,
		HeaderLimit: 5 * time.Second, ReadLimit: 30 * time.Second, WriteLimit: 30 * time.Second,
		StopLimit: 5 * time.Second, Drain: 2 * time.Second,
		Log: slog.New(slog.DiscardHandler),
	}
}

// Users reports whether users can sign in.
func (c *Config) Users() bool { return c.UserHeader != "" || c.APIKeys != "" || c.OIDCIssuer != "" }

// isNoHost reports whether no request can be for a value of --host, although it looks as if one could.
func isNoHost(host string) bool { return host != "*" && strings.ContainsAny(host, "/*") }

func (c *Config) check() error {
	for name, d := range map[string]time.Duration{
		"lock-ttl": c.LockTTL, "sweep": c.Sweep, "max-wait": c.MaxWait, "ping": c.Ping, "history": c.History,
		"instance-ttl": c.InstanceTTL, "header-limit": c.HeaderLimit, "read-limit": c.ReadLimit,
		"write-limit": c.WriteLimit, "stop-limit": c.StopLimit,
		"room-grace": c.RoomGrace, "room-idle": c.RoomIdle, "room-scan": c.RoomScan, "room-heartbeat": c.RoomHeartbeat, "room-dead": c.RoomDead,
	} {
		if d <= 0 {
			return fmt.Errorf("--%s must be positive", name)
		}
	}
	if c.RoomDead < 2*c.RoomHeartbeat {
		return errors.New("--room-dead must be at least twice --room-heartbeat")
	}
	if c.Rate > 0 && c.Burst < 1 || c.NewRate > 0 && c.NewBurst < 1 || c.AddressRate > 0 && c.AddressBurst < 1 || c.UserRate > 0 && c.UserBurst < 1 {
		return errors.New("--burst, --new-burst, --address-burst and --user-burst must be 1 or more")
	}
	if slices.ContainsFunc(c.Hosts, isNoHost) {
		return errors.New("--host is a name without https://, such as locks.example.com, or * alone for any")
	}
	if c.GroupsHeader != "" && c.UserHeader == "" {
		return errors.New("--groups-header needs --user-header: groups are those of a user")
	}
	if c.UserHeader != "" && len(c.TrustedProxies) == 0 {
		return errors.New("--user-header needs --trusted-proxy with the addresses of the proxies that set the header, such as 127.0.0.1; " +
			"otherwise anybody could claim to be any user")
	}
	if c.Keep < 1 || c.Keep > content.MaxKeep {
		return fmt.Errorf("--keep is from 1 to %d", content.MaxKeep)
	}
	if c.MaxContent < 1 || c.Quota < minQuota {
		return fmt.Errorf("--max-content must be positive, and --quota %d or more", minQuota)
	}
	if c.Blobs == "" && (len(c.Etcd) > 0 || c.PeerURL != "") {
		return errors.New("servers that share the store share the contents: name their bucket with --blobs s3://bucket/prefix?endpoint=https://host, " +
			"or a directory that all servers mount")
	}
	if len(c.Etcd) > 0 && (c.PeerURL != "" || len(c.Join) > 0) {
		return errors.New("--peer-url and --join are for the embedded etcd; they do not go with --etcd")
	}
	if c.PeerTLS != (kv.TLSFiles{}) && c.PeerURL == "" || (c.EtcdTLS != (kv.TLSFiles{}) || c.EtcdUser != "" || c.Prefix != "") && len(c.Etcd) == 0 {
		return errors.New("--peer-cert, --peer-key and --peer-ca need --peer-url; --etcd-cert, --etcd-key, --etcd-ca, --etcd-user and --prefix need --etcd")
	}
	if (len(c.Join) > 0 || c.ClientURL != "" || c.PeerAddr != "") && c.PeerURL == "" {
		return errors.New("--join, --client-url and --peer-addr need --peer-url, where the other members reach this one")
	}
	if c.ClientAddr != "" && c.ClientURL == "" || c.Replace != "" && len(c.Join) == 0 {
		return errors.New("--client-addr needs --client-url, and --replace needs --join")
	}
	return nil
}

// listFlag is a flag with several values, separated by commas. It may be there several times.
type listFlag []string

func (l *listFlag) String() string { return strings.Join(*l, ",") }

// Set adds values.
func (l *listFlag) Set(text string) error {
	for _, item := range strings.Split(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			*l = append(*l, item)
		}
	}
	return nil
}
