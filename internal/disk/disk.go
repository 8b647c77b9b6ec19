// Package disk makes changes of folders durable.
package disk

import (
	"errors"
	"os"
)

// Sync makes the names in a folder durable: files that were made, renamed and removed there.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
