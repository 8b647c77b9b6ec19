//go:build js && wasm

package jsbridge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

func TestContent(t *testing.T) {
	object := js(t, "({ bytes: new Uint8Array([1, 2, 3, 4]).subarray(1) })")
	content := jsbridge.Content{Object: object}
	for range 2 {
		bytes, err := content.Bytes()
		require.NoError(t, err)
		assert.Equal(t, []byte{2, 3, 4}, bytes)
	}
	content.Drop()
	_, err := content.Bytes()
	require.Error(t, err)
	_, err = jsbridge.Content{Object: js(t, "({ bytes: 'text' })")}.Bytes()
	require.Error(t, err)
}
