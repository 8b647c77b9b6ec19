//go:build js && wasm

package jsbridge_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

// What came from JavaScript goes back as it came, once; everything else is a copy.
func TestLoan(t *testing.T) {
	var loan jsbridge.Loan
	lent := js(t, "new Uint8Array([1, 2, 3, 4]).subarray(1)")
	content, err := loan.Bytes(lent)
	require.NoError(t, err)
	assert.Equal(t, []byte{2, 3, 4}, content)

	for _, other := range [][]byte{slices.Clone(content), content[:2], nil} {
		_, err := loan.Bytes(lent)
		require.NoError(t, err)
		array, err := loan.Uint8Array(other)
		require.NoError(t, err)
		assert.False(t, array.Equal(lent))
		copied, err := jsbridge.Bytes(array)
		require.NoError(t, err)
		assert.Equal(t, len(other), len(copied))
	}
	content, err = loan.Bytes(lent)
	require.NoError(t, err)
	array, err := loan.Uint8Array(content)
	require.NoError(t, err)
	assert.True(t, array.Equal(lent))
	array, err = loan.Uint8Array(content)
	require.NoError(t, err)
	assert.False(t, array.Equal(lent), "it may have been transferred")
	_, err = loan.Bytes(js(t, "'text'"))
	require.Error(t, err)
}
