package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// event is an event as a listener received it, with the time of receipt as "seen".
type event map[string]any

func (e event) kind() string              { return strings.TrimPrefix(e["type"].(string), "lock:") }
func (e event) number(key string) float64 { n, _ := e[key].(float64); return n }
func (e event) object(key string) event   { o, _ := e[key].(map[string]any); return o }

// told returns the events of a tab after checking each payload.
func told(t *testing.T, tab *browser.Tab) []event {
	t.Helper()
	events := browser.Get[[]event](tab, "events")
	owner := browser.Get[string](tab, "hf.ownerId")
	for i, e := range events {
		checkPayload(t, owner, e)
		if i > 0 {
			assert.GreaterOrEqual(t, e.number("at"), events[i-1].number("at"), "%v before %v", events[i-1], e)
		}
	}
	return events
}

func kinds(events []event) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.kind()
	}
	return names
}

// payloads lists the fields of each event, besides the common ones.
var payloads = map[string][]string{
	"attempt":           {"strategy", "retry"},
	"waiting":           {"retry", "delayMs"},
	"acquired":          {"lease"},
	"renew-scheduled":   {"lease", "nextHeartbeatInMs"},
	"renewed":           {"lease"},
	"release-requested": {"lease"},
	"released":          {},
	"error":             {"operation", "error", "retryable"},
	"warning":           {"warning", "detail", "lease"}, // heartbeat-delayed, on a machine that is busy
	"readonly-entered":  {"reason", "lastError", "retryable"},
}

var leaseFields = []string{"leaseId", "ownerId", "ownerName", "resource", "strategy", "viaFallback", "mode", "paths", "token",
	"ttlMs", "heartbeatIntervalMs", "acquiredAt", "expiresAt", "nextHeartbeatAt", "renewAttempt"}

const uuidV4 = `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`

// checkPayload asserts that the event has exactly the fields of its type, with valid values.
func checkPayload(t *testing.T, owner string, e event) {
	t.Helper()
	want, known := payloads[e.kind()]
	require.True(t, known, "%v", e)
	want = append([]string{"type", "at", "ownerId", "resource", "leaseId", "seen"}, want...)
	got := slices.Collect(maps.Keys(e))
	if e["reason"] == "runtime-crashed" {
		got = append(got, "leaseId") // it concerns all of them
	}
	assert.ElementsMatch(t, want, got, "%v", e)
	assert.Equal(t, owner, e["ownerId"])
	// An event may be on its way to the page when the page is suspended.
	assert.InDelta(t, e.number("seen"), e.number("at"), float64(browser.Limit.Milliseconds()), "%v", e)
	if e["leaseId"] != nil {
		assert.Regexp(t, uuidV4, e["leaseId"])
	}
	if l := e.object("lease"); l != nil {
		assert.ElementsMatch(t, leaseFields, slices.Collect(maps.Keys(l)), "%v", e)
		assert.Equal(t, e["leaseId"], l["leaseId"])
		assert.Equal(t, e["ownerId"], l["ownerId"])
		assert.Equal(t, e["resource"], l["resource"])
		// Each time is truncated to whole milliseconds separately.
		assert.InDelta(t, e.number("at")+l.number("ttlMs"), l.number("expiresAt"), l.number("heartbeatIntervalMs")+1000)
	}
	for _, key := range []string{"error", "lastError"} {
		if err := e.object(key); err != nil {
			assert.Equal(t, "ProjectLockError", err["name"])
			assert.Contains(t, err["message"], err["code"])
			if err["code"] != "runtime-crashed" { // that one concerns all resources
				assert.Equal(t, e["resource"], err["resource"])
			}
		}
	}
	if e.kind() == "error" {
		assert.Equal(t, e.object("error")["retryable"], e["retryable"])
		assert.Equal(t, e.object("error")["operation"], e["operation"])
	}
	if e.kind() == "readonly-entered" {
		assert.Equal(t, false, e["retryable"])
	}
}

// oneLease asserts that all events belong to one acquisition.
func oneLease(t *testing.T, events []event) {
	t.Helper()
	for _, e := range events {
		assert.Equal(t, events[0]["leaseId"], e["leaseId"], "%v", e)
	}
}

// code returns the code of the event's error.
func (e event) code() any {
	if err := e.object("error"); err != nil {
		return err["code"]
	}
	return e.object("lastError")["code"]
}

// undelayed returns the events without the warnings that a heartbeat was late, which a busy machine adds.
func undelayed(events []event) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e["warning"] == "heartbeat-delayed" })
}

// only returns the events of one type.
func only(events []event, kind string) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.kind() != kind })
}
