package blobs

import (
	"strings"
	"testing"
)

// For every place, OpenS3 accepts or refuses it, and its error never shows credentials.
func FuzzPlace(f *testing.F) {
	for _, place := range []string{
		"s3://b", "s3://b/p/q?endpoint=http://h:1&region=r", "s3://k:secretsecret@b", "s3://b?endpoint=https://h/path", "s3://%zz", "s3://b?%",
	} {
		f.Add(place)
	}
	f.Fuzz(func(t *testing.T, place string) {
		s, err := parseS3("s3://" + place)
		if err != nil {
			return
		}
		if s.bucket == "" || s.prefix != "" && !strings.HasSuffix(s.prefix, "/") || strings.HasPrefix(s.prefix, "/") {
			t.Fatalf("%q: bucket %q, prefix %q", place, s.bucket, s.prefix)
		}
	})
}
