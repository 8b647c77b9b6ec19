package blobs

import "testing"

// SetPage changes the number of objects per list request for one test.
func SetPage(t *testing.T, n int) {
	former := s3Page
	s3Page = n
	t.Cleanup(func() { s3Page = former })
}

// SetFault makes each step of a write fail with the error that fault returns.
func (f *Files) SetFault(fault func(step string) error) { f.fault = fault }
