package lock

import "time"

// EventType is the name of an event.
type EventType string

// The events of a lease, in the order in which they usually come.
const (
	EventAttempt           EventType = "lock:attempt"
	EventWaiting           EventType = "lock:waiting"
	EventAcquired          EventType = "lock:acquired"
	EventRenewScheduled    EventType = "lock:renew-scheduled"
	EventRenewed           EventType = "lock:renewed"
	EventWarning           EventType = "lock:warning"
	EventFallbackEngaged   EventType = "lock:fallback-engaged"
	EventHandoverRequested EventType = "lock:handover-requested"
	EventReleaseRequested  EventType = "lock:release-requested"
	EventReleased          EventType = "lock:released"
	EventError             EventType = "lock:error"
	EventReadonlyEntered   EventType = "lock:readonly-entered"
)

// Warning is the name of a condition that needs attention although the lease goes on.
type Warning string

// The warnings.
const (
	WarnFallbackEngaged  Warning = "fallback-engaged"
	WarnFallbackDegraded Warning = "fallback-degraded"
	WarnHeartbeatDelayed Warning = "heartbeat-delayed"
	WarnSelfWait         Warning = "self-wait"
)

// ReadonlyReason is the reason why the owner may no longer write.
type ReadonlyReason string

// The reasons.
const (
	ReasonAcquireFailed  ReadonlyReason = "acquire-failed"
	ReasonRenewFailed    ReadonlyReason = "renew-failed"
	ReasonReleaseFailed  ReadonlyReason = "release-failed"
	ReasonLeaseLost      ReadonlyReason = "lease-lost"
	ReasonRuntimeCrashed ReadonlyReason = "runtime-crashed"
)

// Event is one event. Type, At, OwnerID and Resource are always set. LeaseID is set if the event is about a lease. The
// other fields belong to the types named beside them.
//
// Example: a Web Lock is granted after one wait, kept for two heartbeats, and released. The order of the events is:
// attempt, error, waiting, attempt, acquired, renew-scheduled, renewed, renew-scheduled, renewed, renew-scheduled,
// release-requested, released.
type Event struct {
	_        [0]func() // disallow ==, whose code would be in the Wasm
	Type     EventType
	At       time.Time
	OwnerID  string
	Resource string
	LeaseID  string // of the lease that is held or being acquired

	Strategy        Strategy       // attempt
	Retry           int            // attempt, waiting: 0 is the first attempt
	Delay           time.Duration  // waiting: until the attempt Retry
	Lease           *Lease         // acquired, renewed, renew-scheduled, fallback-engaged, release-requested, handover-requested; warning, if there is one
	NextHeartbeatIn time.Duration  // renew-scheduled
	Warning         Warning        // warning
	Detail          string         // warning
	From            string         // handover-requested: the id of the owner that asks
	Operation       Operation      // error
	Err             *Error         // error, readonly-entered
	Reason          ReadonlyReason // readonly-entered
}
