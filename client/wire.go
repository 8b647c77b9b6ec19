package client

import (
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Mode is how a lock is shared.
type Mode = lock.Mode

// An exclusive lock admits one holder; shared ones admit each other.
const (
	Exclusive = lock.Exclusive
	Shared    = lock.Shared
)

// Holder is a lease, as the server shows it to each client that may read one of its paths.
type Holder struct {
	HolderID   string     `json:"holder_id"`
	HolderName string     `json:"holder_name"`
	LockedAt   time.Time  `json:"locked_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	Paths      [][]string `json:"paths"` // only the paths that this client may read
	Mode       Mode       `json:"mode"`
	Slot       int        `json:"slot"`
	Token      int64      `json:"token"`
	// LeaseID is empty if this client may not break the lock.
	LeaseID string `json:"lease_id"`
	// IsMine reports that this is one of the leases around the acquisition that failed, or another one within these.
	IsMine bool `json:"is_mine"`
}

// Waiter is a request that waits.
type Waiter struct {
	HolderID   string     `json:"holder_id"`
	HolderName string     `json:"holder_name"`
	Paths      [][]string `json:"paths"`
	Mode       Mode       `json:"mode"`
	Since      time.Time  `json:"since"`
}

type acquireBody struct {
	Paths      [][]string `json:"paths"`
	Mode       Mode       `json:"mode"`
	Slots      int        `json:"slots,omitempty"`
	TTL        int64      `json:"ttl_ms,omitempty"`
	Wait       int64      `json:"wait_ms"`
	Ticket     string     `json:"ticket"`
	HolderName string     `json:"holder_name,omitempty"`
}

type grantBody struct {
	LeaseID   string    `json:"lease_id"`
	Token     int64     `json:"token"`
	LockedAt  time.Time `json:"locked_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Slot      int       `json:"slot"`
}

type refusal struct {
	Error   string   `json:"error"`
	Message string   `json:"message"`
	Holders []Holder `json:"holders"`
}

type breakBody struct {
	Reason     string `json:"reason"`
	HolderName string `json:"holder_name,omitempty"`
}
