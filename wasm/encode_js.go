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

func encodeLease(l lock.Lease) jsbridge.Text {
	var o jsbridge.Object
	o.Text("leaseId", l.ID)
	o.Text("ownerId", l.OwnerID)
	o.Optional("ownerName", l.OwnerName)
	o.Text("resource", l.Resource)
	o.Text("strategy", string(l.Strategy))
	o.Flag("viaFallback", l.Fallback)
	o.Text("mode", string(l.Mode))
	o.Add("paths", jsbridge.Paths(l.Paths))
	o.Whole("token", l.Token)
	o.Duration("ttlMs", l.TTL)
	o.Duration("heartbeatIntervalMs", l.HeartbeatInterval)
	o.Whole("acquiredAt", l.AcquiredAt.UnixMilli())
	o.Whole("expiresAt", l.ExpiresAt.UnixMilli())
	o.Whole("nextHeartbeatAt", l.NextHeartbeatAt.UnixMilli())
	o.Whole("renewAttempt", int64(l.RenewAttempt))
	if l.Slots > 1 {
		o.Whole("slot", int64(l.Slot))
	}
	o.Optional("within", l.Within)
	return o.JSON()
}

func encodeEvent(e lock.Event) *jsbridge.Object {
	o := &jsbridge.Object{}
	o.Text("type", string(e.Type))
	o.Whole("at", e.At.UnixMilli())
	o.Text("ownerId", e.OwnerID)
	o.Text("resource", e.Resource)
	o.Optional("leaseId", e.LeaseID)
	if e.Lease != nil {
		o.Add("lease", encodeLease(*e.Lease))
	}
	switch e.Type {
	case lock.EventAttempt:
		o.Text("strategy", string(e.Strategy))
		o.Whole("retry", int64(e.Retry))
	case lock.EventWaiting:
		o.Whole("retry", int64(e.Retry))
		o.Duration("delayMs", e.Delay)
	case lock.EventRenewScheduled:
		o.Duration("nextHeartbeatInMs", e.NextHeartbeatIn)
	case lock.EventWarning:
		o.Text("warning", string(e.Warning))
		o.Optional("detail", e.Detail)
	case lock.EventHandoverRequested:
		o.Text("from", e.From)
	case lock.EventError:
		o.Text("operation", string(e.Operation))
		o.Add("error", reason(e.Err))
		o.Flag("retryable", e.Err.Retryable())
	case lock.EventReadonlyEntered:
		o.Text("reason", string(e.Reason))
		o.Add("lastError", reason(e.Err))
		o.Flag("retryable", false)
	}
	return o
}

// reason describes an error; the facade makes a ProjectLockError of it.
func reason(err error) jsbridge.Text {
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
	var o jsbridge.Object
	o.Text("code", string(e.Code))
	o.Text("operation", string(cmp.Or(e.Operation, e.Code.Info().Operation)))
	o.Flag("retryable", e.Retryable())
	o.Text("message", e.Error())
	o.Optional("resource", e.Resource)
	return o.JSON()
}

func encodeState(holders []lock.Holder, waiters []lock.Waiter) jsbridge.Text {
	var o jsbridge.Object
	o.Add("held", jsbridge.List(holders, func(h lock.Holder) jsbridge.Text { return jsbridge.EncodeHolder(h).JSON() }))
	o.Add("pending", jsbridge.List(waiters, func(w lock.Waiter) jsbridge.Text {
		o := jsbridge.EncodeWaiter(w)
		o.Add("waitsFor", jsbridge.Texts(w.WaitsFor))
		return o.JSON()
	}))
	return o.JSON()
}

func encodeSnapshot(s lock.Snapshot) jsbridge.Text {
	var o jsbridge.Object
	o.Add("held", jsbridge.List(s.Held, encodeInfo))
	o.Add("pending", jsbridge.List(s.Pending, encodeInfo))
	return o.JSON()
}

func encodeInfo(info lock.Info) jsbridge.Text {
	var o jsbridge.Object
	o.Text("name", info.Name)
	o.Text("mode", string(info.Mode))
	o.Text("clientId", info.ClientID)
	return o.JSON()
}
