package httpapi

import (
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// The headers of the API besides those of HTTP and Holdfast-Session.
const (
	tokenHeader      = "Holdfast-Token"
	saveHeader       = "Holdfast-Save"  // <draft>/<number>: the snapshot of the text that a content is
	orderHeader      = "Holdfast-Order" // counts the writes of content under one token
	savedAtHeader    = "Holdfast-Saved-At"
	generationHeader = "Holdfast-Generation"
	revisionHeader   = "Holdfast-Revision"
)

// The types of this file are the bodies of all replies in JSON. A field without omitempty is in every reply of its type.
// A test compares them with the schemas of openapi.json.

// done is the reply to a call that returns nothing.
type done struct {
	Success bool   `json:"success"`
	Message string `json:"message,omitempty"`
}

// failure is the reply with an error.
type failure struct {
	Success bool   `json:"success"`
	Error   string `json:"error"`
	Message string `json:"message"`
}

// sessionReply describes the session of a request.
type sessionReply struct {
	Success     bool         `json:"success"`
	HasUsers    bool         `json:"has_users"`
	TakesBearer bool         `json:"takes_bearer"`
	HasProvider bool         `json:"has_provider"`
	SignedIn    bool         `json:"signed_in"`
	User        string       `json:"user,omitempty"`
	EndsAt      *events.Time `json:"ends_at,omitempty"`
}

// grantReply is the grant of a document's lock. LeaseID is set after a handover.
type grantReply struct {
	Success   bool        `json:"success"`
	LockedAt  events.Time `json:"locked_at"`
	ExpiresAt events.Time `json:"expires_at"`
	Token     int64       `json:"token"`
	Ticket    string      `json:"ticket,omitempty"`
	LeaseID   string      `json:"lease_id,omitempty"`
}

// leaseGrant is the grant of a lock on paths.
type leaseGrant struct {
	grantReply
	LeaseID string `json:"lease_id"`
	Slot    int    `json:"slot"`
}

// renewal is the reply to a heartbeat.
type renewal struct {
	Success   bool        `json:"success"`
	ExpiresAt events.Time `json:"expires_at"`
}

// publicLease is the part of a lease that every client may see.
type publicLease struct {
	HolderID   string      `json:"holder_id"`
	HolderName string      `json:"holder_name"`
	LockedAt   events.Time `json:"locked_at"`
	ExpiresAt  events.Time `json:"expires_at"`
}

func public(l locks.Lease) publicLease {
	return publicLease{l.Holder.ID, l.Holder.Name, events.Time(l.LockedAt), events.Time(l.ExpiresAt)}
}

// noLock says that nobody holds a document's lock.
type noLock struct {
	IsLocked bool `json:"is_locked"`
}

// documentLock describes a document's lock. Paths and Mode are set for another lock that is in the way, and Holders if there are several.
type documentLock struct {
	noLock
	publicLease
	IsMyLock bool         `json:"is_my_lock"`
	Token    int64        `json:"token"`
	Paths    []locks.Path `json:"paths,omitempty"`
	Mode     locks.Mode   `json:"mode,omitempty"`
	Holders  []leaseReply `json:"holders,omitempty"`
}

// alreadyLocked refuses a document's lock, with the holder if there is one.
type alreadyLocked struct {
	failure
	*publicLease
}

// leftBehind names the leases that a tab of the session left behind.
type leftBehind struct {
	failure
	Tokens []int64 `json:"tokens"`
}

// refusedReply has the holder's reason for not handing over the lock.
type refusedReply struct {
	failure
	Reason string `json:"reason"`
}

// deniedReply refuses a lock on paths, with the leases in the way.
type deniedReply struct {
	failure
	Holders []leaseReply `json:"holders"`
}

// leaseReply describes a lease. LeaseID is set for clients that may break it.
type leaseReply struct {
	publicLease
	Paths   []locks.Path `json:"paths"`
	Mode    locks.Mode   `json:"mode"`
	Slot    int          `json:"slot"`
	Token   int64        `json:"token"`
	IsMine  bool         `json:"is_mine"`
	LeaseID string       `json:"lease_id,omitempty"`
}

// waiterReply describes a request that waits.
type waiterReply struct {
	HolderID   string       `json:"holder_id"`
	HolderName string       `json:"holder_name"`
	Paths      []locks.Path `json:"paths"`
	Mode       locks.Mode   `json:"mode"`
	Since      events.Time  `json:"since"`
	IsMine     bool         `json:"is_mine"`
}

// listing is a page of the locks at a place.
type listing struct {
	Holders []leaseReply  `json:"holders"`
	Waiters []waiterReply `json:"waiters"`
	Next    string        `json:"next,omitempty"`
}

// savedReply describes the content that was written.
type savedReply struct {
	Success bool        `json:"success"`
	ETag    string      `json:"etag"`
	SavedAt events.Time `json:"saved_at"`
}

// generation describes an earlier content.
type generation struct {
	Generation string      `json:"generation"`
	ETag       string      `json:"etag"`
	Token      int64       `json:"token"`
	Size       int         `json:"size"`
	SavedAt    events.Time `json:"saved_at"`
}

// historyReply lists earlier contents.
type historyReply struct {
	Generations []generation `json:"generations"`
}

// documentReply describes a document of a list. Name is the document, and so is Document, for older clients.
type documentReply struct {
	Name     string      `json:"name"`
	Document string      `json:"document"`
	Size     int         `json:"size"`
	SavedAt  events.Time `json:"saved_at"`
	ETag     string      `json:"etag"`
	IsLocked bool        `json:"is_locked"`
}

// documentPage is a page of the documents.
type documentPage struct {
	Documents []documentReply `json:"documents"`
	Next      string          `json:"next,omitempty"`
}
