//go:build js && wasm

package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// The values below go to the facade, which makes leases, errors and events of them. Their fields are those of the
// declaration file.

func encodeLease(l lock.Lease) map[string]any {
	m := map[string]any{
		"leaseId":             l.ID,
		"ownerId":             l.OwnerID,
		"resource":            l.Resource,
		"strategy":            string(l.Strategy),
		"viaFallback":         l.Fallback,
		"mode":                string(l.Mode),
		"paths":               jsbridge.EncodePaths(l.Paths),
		"token":               l.Token,
		"ttlMs":               l.TTL,
		"heartbeatIntervalMs": l.HeartbeatInterval,
		"acquiredAt":          l.AcquiredAt.UnixMilli(),
		"expiresAt":           l.ExpiresAt.UnixMilli(),
		"nextHeartbeatAt":     l.NextHeartbeatAt.UnixMilli(),
		"renewAttempt":        l.RenewAttempt,
	}
	if l.OwnerName != "" {
		m["ownerName"] = l.OwnerName
	}
	if l.Slots > 1 {
		m["slot"] = l.Slot
	}
	if l.Within != "" {
		m["within"] = l.Within
	}
	return m
}

func encodeEvent(e lock.Event) map[string]any {
	m := map[string]any{
		"type":     string(e.Type),
		"at":       e.At.UnixMilli(),
		"ownerId":  e.OwnerID,
		"resource": e.Resource,
	}
	if e.LeaseID != "" {
		m["leaseId"] = e.LeaseID
	}
	if e.Lease != nil {
		m["lease"] = encodeLease(*e.Lease)
	}
	switch e.Type {
	case lock.EventAttempt:
		m["strategy"], m["retry"] = string(e.Strategy), e.Retry
	case lock.EventWaiting:
		m["retry"], m["delayMs"] = e.Retry, e.Delay
	case lock.EventRenewScheduled:
		m["nextHeartbeatInMs"] = e.NextHeartbeatIn
	case lock.EventWarning:
		m["warning"] = string(e.Warning)
		if e.Detail != "" {
			m["detail"] = e.Detail
		}
	case lock.EventHandoverRequested:
		m["from"] = e.From
	case lock.EventError:
		m["operation"], m["error"], m["retryable"] = string(e.Operation), reason(e.Err), e.Err.Retryable()
	case lock.EventReadonlyEntered:
		m["reason"], m["lastError"], m["retryable"] = string(e.Reason), reason(e.Err), false
	}
	return m
}

// reason describes an error; the facade makes a ProjectLockError of it.
func reason(err error) any {
	var e *lock.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.DeadlineExceeded): // an internal limit: the same call may succeed later
		e = &lock.Error{Code: lock.CodeTimeout, Operation: lock.OpAcquire, Detail: "the browser did not answer in time; try again"}
	case errors.Is(err, context.Canceled):
		e = &lock.Error{Code: lock.CodeAborted, Operation: lock.OpAcquire, Detail: "it was given up before it was done"}
	default:
		e = &lock.Error{Code: lock.CodeUnsupported, Operation: lock.OpAcquire, Detail: "the browser behaved unexpectedly", Err: err}
	}
	m := map[string]any{
		"code":      string(e.Code),
		"operation": string(cmp.Or(e.Operation, e.Code.Info().Operation)),
		"retryable": e.Retryable(),
		"message":   e.Error(),
	}
	if e.Resource != "" {
		m["resource"] = e.Resource
	}
	return m
}

func encodeState(holders []lock.Holder, waiters []lock.Waiter) map[string]any {
	held, pending := make([]any, len(holders)), make([]any, len(waiters))
	for i, h := range holders {
		held[i] = jsbridge.EncodeHolder(h)
	}
	for i, w := range waiters {
		blockers := make([]any, len(w.WaitsFor))
		for i, owner := range w.WaitsFor {
			blockers[i] = owner
		}
		waiter := jsbridge.EncodeWaiter(w)
		waiter["waitsFor"] = blockers
		pending[i] = waiter
	}
	return map[string]any{"held": held, "pending": pending}
}

func encodeSnapshot(s lock.Snapshot) map[string]any {
	return map[string]any{"held": encodeInfos(s.Held), "pending": encodeInfos(s.Pending)}
}

func encodeInfos(infos []lock.Info) []any {
	values := make([]any, len(infos))
	for i, info := range infos {
		values[i] = map[string]any{"name": info.Name, "mode": string(info.Mode), "clientId": info.ClientID}
	}
	return values
}
