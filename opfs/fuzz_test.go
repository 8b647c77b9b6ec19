//go:build !js

package opfs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzNewest(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(`{"holders":[{"uuid":"x"}]}`))
	f.Add(apply(nil, restarting(slot{}, nil, 7, []byte("token 1\n")), uncut))
	f.Add([]byte(magic + "1 number=1 bytes=99999999999 crc=00000000\n"))
	f.Fuzz(func(t *testing.T, image []byte) {
		now, all, err := newest(image)
		if err != nil {
			return
		}
		after := apply(image, following(now, all, []byte("next")), uncut)
		found, _, err := newest(after)
		require.NoError(t, err)
		require.Equal(t, "next", string(found.text))
	})
}

func FuzzDecode(f *testing.F) {
	f.Add((&table{}).encode())
	f.Add(full().encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := decode(text); err == nil {
			again, err := decode(got.encode())
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
	})
}
