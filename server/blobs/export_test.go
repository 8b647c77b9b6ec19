package blobs

import "testing"

// SetPage changes for one test how many objects are listed at once.
func SetPage(t *testing.T, n int) {
	former := s3Page
	s3Page = n
	t.Cleanup(func() { s3Page = former })
}

// SetFault has each step of a write fail with what fault returns.
func (f *Files) SetFault(fault func(step string) error) { f.fault = fault }
