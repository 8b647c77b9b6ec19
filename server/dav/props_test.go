package dav

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Random updates have the result of a program that carries out one after the other.
func TestUpdatesOfPropertiesAreCarriedOutInTheirOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var props, expected []property
	for range 1000 {
		var updates []update
		for range random.IntN(6) {
			one := property{Name: string(rune('a' + random.IntN(4))), Value: strconv.Itoa(random.Int())}
			updates = append(updates, update{one, random.IntN(3) == 0})
		}
		for _, u := range updates {
			expected = slices.DeleteFunc(slices.Clone(expected), func(p property) bool { return p.Name == u.Name })
			if !u.remove {
				expected = append(expected, u.property)
			}
		}
		props = apply(props, updates)
		require.Equal(t, expected, props, updates)
	}
}
