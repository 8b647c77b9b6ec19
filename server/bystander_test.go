package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server"
)

// A session sends far more requests than it may. Those that are refused take nothing from the other sessions of its address and of its user.
func TestASessionAtItsLimitRefusesNoOther(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*server.Config){
		"address": func(c *server.Config) { c.AddressRate, c.AddressBurst = 0.001, 20 },
		"user": func(c *server.Config) {
			c.UserRate, c.UserBurst = 0.001, 20
			c.UserHeader = "X-User"
			c.TrustedProxies = []string{"127.0.0.0/8"}
		},
	} {
		s := start(t, func(c *server.Config) { c.Rate, c.Burst = 0.001, 5; limit(c) })
		ask := func(secret string) int {
			client := s.as(t, secret)
			if name == "user" {
				client = client.with("X-User", "ann")
			}
			return client.do("GET", lockOf("r"), nil).status
		}
		passed := 0
		for range 40 {
			if ask("busy") == http.StatusOK {
				passed++
			}
		}
		assert.Equal(t, 5, passed, name)
		assert.Equal(t, http.StatusOK, ask("calm"), name)
	}
}
