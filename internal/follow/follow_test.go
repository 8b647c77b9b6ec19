package follow

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func join(texts ...[]byte) (string, error) {
	all := ""
	for _, text := range texts {
		all += string(text)
	}
	if all == "broken" {
		return "", errors.New("it is broken")
	}
	return all, nil
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	_, err := Open(join, path)
	require.ErrorIs(t, err, os.ErrNotExist)
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("broken")
	_, err = Open(join, path)
	require.ErrorContains(t, err, path+": it is broken")
	write("one")
	f, err := Open(join, path)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		go f.Follow(t.Context(), func(error) {})
		after := func(text string) string {
			if text == "" {
				require.NoError(t, os.Remove(path))
			} else {
				write(text)
			}
			time.Sleep(2 * every)
			synctest.Wait()
			return f.Get()
		}
		assert.Equal(t, "second", after("second"))
		assert.Equal(t, "second", after("broken"), "the former text stays")
		assert.Equal(t, "second", after(""), "the former text stays while the file is missing")
		assert.Equal(t, "third", after("third"))

		for i := range 5 {
			write("fourth"[:i+1]) // in place, and not at once
			time.Sleep(every)
			synctest.Wait()
			assert.Equal(t, "third", f.Get(), "a half-written file is not used")
		}
		assert.Equal(t, "fourth", after("fourth"))
	})
}
