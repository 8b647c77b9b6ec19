//go:build js && wasm

package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// An internal limit is reported as retryable: the same call may succeed later.
func TestReasonOfForeignError(t *testing.T) {
	for _, c := range []struct {
		err       error
		code      lock.Code
		retryable bool
	}{
		{context.DeadlineExceeded, lock.CodeTimeout, true},
		{errors.Join(nil, context.DeadlineExceeded), lock.CodeTimeout, true},
		{context.Canceled, lock.CodeAborted, false},
		{errors.New("strange"), lock.CodeUnsupported, false},
		{&lock.Error{Code: lock.CodeReleaseFailed, Err: context.DeadlineExceeded}, lock.CodeReleaseFailed, false},
	} {
		var told map[string]any
		require.NoError(t, json.Unmarshal([]byte(reason(c.err)), &told))
		assert.Equal(t, string(c.code), told["code"], "%v", c.err)
		assert.Equal(t, c.retryable, told["retryable"], "%v", c.err)
	}
}
