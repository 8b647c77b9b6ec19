package e2e

import (
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Run(m)) }
