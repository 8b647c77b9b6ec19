package blobs

import "testing"

// SetPage changes for one test how many objects are listed at once.
func SetPage(t *testing.T, n int) {
	former := s3Page
	s3Page = n
	t.Cleanup(func() { s3Page = former })
}
