package server_test

import (
	"fmt"
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

// A program that keeps no session, or has a wrong key, asks again and again. Requests that the limit of new sessions refuses take nothing from
// the sessions of its address that the server knows.
func TestNewSessionsAtTheirLimitRefuseNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys   string
		answer int
	}{"new": {answer: http.StatusOK}, "wrong": {keyLine("ann", ""), http.StatusUnauthorized}} {
		s := start(t, func(config *server.Config) {
			config.NewRate, config.NewBurst = 0.001, 5
			config.AddressRate, config.AddressBurst = 0.001, 20
			if c.keys != "" {
				config.APIKeys = writeFile(t, c.keys)
			}
		})
		calm := s.as(t, "ann-key")
		assert.Equal(t, http.StatusOK, calm.do("GET", lockOf("r"), nil).status, name)
		answered := 0
		for i := range 40 {
			switch status := s.as(t, fmt.Sprintf("%s-%d", name, i)).do("GET", lockOf("r"), nil).status; status {
			case c.answer:
				answered++
			default:
				assert.Equal(t, http.StatusTooManyRequests, status, name)
			}
		}
		assert.Equal(t, 4, answered, name)
		assert.Equal(t, http.StatusOK, calm.do("GET", lockOf("r"), nil).status, name)
	}
}
