//go:build js && wasm && !files

package main

import (
	"context"

	"github.com/holdfast-dev/holdfast/lock"
)

func wire(s settings) (mechanism, error) {
	web := webLocks(s)
	return mechanism{
		backends: []lock.Backend{web},
		locker:   web.Locker,
		end:      func(context.Context) error { return nil },
	}, nil
}
