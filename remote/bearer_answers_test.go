package remote

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A refused token is final only if the page gave it as the answer to a refusal, it has never worked, and there is no later one.
func TestWhichRefusalIsFinal(t *testing.T) {
	for name, c := range map[string]struct {
		worked, renewed, replaced bool
		again                     bool
	}{
		"the first token":                    {again: true},
		"a renewed one":                      {renewed: true},
		"a renewed one that worked":          {renewed: true, worked: true, again: true},
		"a renewed one that has a successor": {renewed: true, replaced: true, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			used := &bearer{renewed: c.renewed, worked: c.worked}
			b := &bearers{last: used}
			if c.replaced {
				b.last = &bearer{renewed: true}
			}
			assert.Equal(t, c.again, b.answered(used, statusUnauthorized))
			assert.True(t, used.refused)
		})
	}
}
