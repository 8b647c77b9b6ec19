package server

import (
	"flag"
	"time"
)

// Flags defines a flag for everything that can be set, with the present value as default.
func (c *Config) Flags(flags *flag.FlagSet) {
	f := flagSet{flags}
	c.storeFlags(f)
	c.clusterFlags(f)
	c.userFlags(f)
	c.timeFlags(f)
	c.limitFlags(f)
	c.runFlags(f)
}

// flagSet defines flags whose defaults are the present values.
type flagSet struct{ *flag.FlagSet }

func (f flagSet) text(p *string, name, usage string) { f.StringVar(p, name, *p, usage) }

func (f flagSet) list(p *[]string, name, usage string) { f.Var((*listFlag)(p), name, usage) }

func (f flagSet) duration(p *time.Duration, name, usage string) { f.DurationVar(p, name, *p, usage) }

// storeFlags defines the flags of the stores of locks and contents.
func (c *Config) storeFlags(f flagSet) {
	f.text(&c.DataDir, "data-dir", "`directory` of the embedded etcd")
	f.text(&c.Blobs, "blobs", "`place` of the contents, which servers on one store share: a directory, by default in the data directory, or s3://bucket/prefix?endpoint=https://host&region=name")
	f.IntVar(&c.Keep, "keep", c.Keep, "generations of each document that are kept")
	f.Int64Var(&c.MaxContent, "max-content", c.MaxContent, "`bytes` that a content may have")
	f.Int64Var(&c.Quota, "quota", c.Quota, "`bytes` that the store of locks and names may take (embedded etcd)")
	f.list(&c.Etcd, "etcd", "`host:port,…` of an external etcd cluster to use instead")
	f.duration(&c.History, "history", "how long clients can resume from an old revision (embedded etcd)")
}

// clusterFlags defines the flags of the members of a cluster, and of an external cluster.
func (c *Config) clusterFlags(f flagSet) {
	f.text(&c.Name, "name", "`name` of this member in a cluster of embedded etcds")
	f.text(&c.PeerURL, "peer-url", "`URL` where the other members reach this one, such as http://10.0.0.1:2380")
	f.text(&c.ClientURL, "client-url", "`URL` where new members reach this one to join, such as http://10.0.0.1:2379")
	f.text(&c.PeerAddr, "peer-addr", "`address` to listen on for --peer-url, such as 0.0.0.0:2380, if the URL has a name or an address that is not of this machine")
	f.text(&c.ClientAddr, "client-addr", "`address` to listen on for --client-url, such as 0.0.0.0:2379")
	f.text(&c.EtcdTLS.Cert, "etcd-cert", "`file` of the certificate to show to the external cluster; renewed files count for new connections")
	f.text(&c.EtcdTLS.Key, "etcd-key", "`file` of that certificate's key")
	f.text(&c.EtcdTLS.CA, "etcd-ca", "`file` of the authorities of the external cluster's certificates")
	f.text(&c.EtcdUser, "etcd-user", "`name` of the user of the external cluster, with the password in "+PasswordVariable+" or --etcd-password-file")
	f.text(&c.EtcdPassword, "etcd-password-file", "`file` with that password")
	f.text(&c.Prefix, "prefix", "`text` before every key in the external cluster, so that several deployments share it")
	f.text(&c.PeerTLS.Cert, "peer-cert", "`file` of the certificate that this member shows to the others; renewed files count for new connections")
	f.text(&c.PeerTLS.Key, "peer-key", "`file` of that certificate's key")
	f.text(&c.PeerTLS.CA, "peer-ca", "`file` of the authority that has signed the certificates of all members, and nothing else")
	f.list(&c.Join, "join", "`URL,…`: client URLs of a running cluster to join with an empty data directory; a server ignores its own")
	f.text(&c.Replace, "replace", "peer `URL` of a member whose files are lost, whose place this one takes when it joins")
}

// userFlags defines the flags of origins, users and their permissions.
func (c *Config) userFlags(f flagSet) {
	f.list(&c.Origins, "origin", "`origin,…`: pages of these origins may use the API too, such as https://example.com")
	f.list(&c.Hosts, "host", "`name,…` that clients call this server by, besides localhost; * means any")
	f.list(&c.TrustedProxies, "trusted-proxy", "`range,…` of proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8")
	f.text(&c.UserHeader, "user-header", "`name` of the header in which a trusted reverse proxy gives the user's name")
	f.text(&c.GroupsHeader, "groups-header", "`name` of the header in which that proxy gives the user's groups, with commas between them")
	f.text(&c.APIKeys, "api-keys", "`file` of API keys: a name, sha256:HASH and groups in each line; it is read again when it changes")
	f.text(&c.Audit, "audit", "`file` that logs who signs in, is refused, breaks locks and deletes documents as an administrator")
	f.text(&c.OIDCIssuer, "oidc-issuer", "`URL` of the OpenID Connect provider whose tokens name users")
	f.text(&c.OIDCAudience, "oidc-audience", "`audience` that those tokens are for")
	f.text(&c.OIDCSecret, "oidc-secret", "`file` with the client secret for the provider, if it asks for one")
	f.text(&c.OIDCName, "oidc-name", "`claim` with the user's name; empty is the subject")
	f.text(&c.OIDCGroups, "oidc-groups", "`claim` with the list of the user's groups")
	f.text(&c.Policy, "policy", "`file` of rules that say who may do what; it is read again when it changes")
	f.BoolVar(&c.SecureCookie, "secure-cookie", c.SecureCookie, "send the cookie over HTTPS only, behind a proxy that ends it")
}

// timeFlags defines the flags of the times of locks, waiters and rooms.
func (c *Config) timeFlags(f flagSet) {
	f.duration(&c.LockTTL, "lock-ttl", "how long a document's lock lasts without a heartbeat")
	f.duration(&c.Sweep, "sweep", "pause between two sweeps of everything")
	f.duration(&c.MaxWait, "max-wait", "the longest wait_ms")
	f.duration(&c.Ping, "ping", "pause between two pings on a socket; two pings without an answer end it")
	f.duration(&c.InstanceTTL, "instance-ttl", "how long the waiters of a server that died keep their places")
	f.duration(&c.RoomGrace, "room-grace", "how long a participant keeps its place after its socket closed")
	f.duration(&c.RoomIdle, "room-idle", "time without a change after which a room is closed")
	f.duration(&c.RoomScan, "room-scan", "pause between two searches for idle rooms")
	f.duration(&c.RoomHeartbeat, "room-heartbeat", "pause between two signs of life of this server")
	f.duration(&c.RoomDead, "room-dead", "silence after which the other servers consider a server dead")
}

// limitFlags defines the flags of the limits of a session, an address or a user.
func (c *Config) limitFlags(f flagSet) {
	f.Float64Var(&c.Rate, "rate", c.Rate, "requests a second that one session may send; 0 means no limit")
	f.IntVar(&c.Burst, "burst", c.Burst, "requests that one session may send at once")
	f.Float64Var(&c.NewRate, "new-rate", c.NewRate, "new sessions a second from one address; 0 means no limit")
	f.IntVar(&c.NewBurst, "new-burst", c.NewBurst, "new sessions at once from one address")
	f.Float64Var(&c.AddressRate, "address-rate", c.AddressRate, "requests a second from one address; 0 means no limit")
	f.IntVar(&c.AddressBurst, "address-burst", c.AddressBurst, "requests at once from one address")
	f.Float64Var(&c.UserRate, "user-rate", c.UserRate, "requests a second of one signed-in user; 0 means no limit")
	f.IntVar(&c.UserBurst, "user-burst", c.UserBurst, "requests at once of one signed-in user")
	f.IntVar(&c.MaxLocks, "max-locks", c.MaxLocks, "locks that one session may hold; 0 means no limit")
	f.IntVar(&c.MaxWaiting, "max-waiting", c.MaxWaiting, "requests of one session that may wait; 0 means no limit")
	f.IntVar(&c.MaxTickets, "max-tickets", c.MaxTickets, "tickets of one session that are remembered; 0 means no limit")
	f.IntVar(&c.MaxDocuments, "max-documents", c.MaxDocuments, "documents that one user, or one session without a user, may create; 0 means no limit")
	f.IntVar(&c.MaxSockets, "max-sockets", c.MaxSockets, "open sockets of one address; 0 means no limit")
	f.BoolVar(&c.LockAll, "lock-all", c.LockAll, "let anybody lock all documents at once, with the path documents")
}

// runFlags defines the flags of requests, logs and the end of the server.
func (c *Config) runFlags(f flagSet) {
	f.duration(&c.HeaderLimit, "header-limit", "how long a request's header may take to arrive")
	f.duration(&c.ReadLimit, "read-limit", "how long a request may take to arrive")
	f.duration(&c.WriteLimit, "write-limit", "maximum time to write a response")
	f.BoolVar(&c.AccessLog, "access-log", c.AccessLog, "log each request, with the id that X-Request-Id has in the response")
	f.text(&c.Traces, "traces", "`URL` of an OpenTelemetry collector (OTLP over gRPC) that gets a trace of each request, such as http://127.0.0.1:4317")
	f.duration(&c.Drain, "drain", "how long the server accepts connections after SIGTERM, while /readyz fails; at most half of --stop-limit")
	f.duration(&c.StopLimit, "stop-limit", "how long a graceful stop may take")
}
