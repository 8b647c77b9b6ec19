package blobs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// s3Limit limits each request to the store, including its retries. While a blob is read, it limits each piece.
	s3Limit = 30 * time.Second
	// s3Retries is the maximum number of attempts for one request.
	s3Retries = 3
	// s3Connections is the maximum number of connections to the store: those of the blobs that are read and written.
	s3Connections = keptOpen + openedAtOnce + writtenAtOnce
)

// s3Page is the number of objects per list request, at most 1000. Tests change it.
var s3Page = 1000

// S3 keeps each blob as an object of a bucket. The keys are the paths of [Files], so one can be copied to the other.
type S3 struct {
	requests
	places
	bucket string
	prefix string // empty, or ends with a slash
}

// requests are the requests to the store, as functions. A type that holds a *minio.Client and is converted to an
// interface would link all of the client's methods into the binary, which are 2.4 MB.
type requests struct {
	exists func(ctx context.Context) (bool, error)
	put    func(ctx context.Context, key string, data []byte) error
	get    func(ctx context.Context, key string, options minio.GetObjectOptions) (io.ReadCloser, int64, error)
	remove func(ctx context.Context, key string) error
	list   func(ctx context.Context, options minio.ListObjectsOptions) iter.Seq[minio.ObjectInfo]
}

func requestsOf(client *minio.Client, bucket string) requests {
	core := minio.Core{Client: client}
	return requests{
		exists: func(ctx context.Context) (bool, error) { return client.BucketExists(ctx, bucket) },
		put: func(ctx context.Context, key string, data []byte) error {
			hash := sha256.Sum256(data)
			// With this hash, the client sends the body unchanged. Otherwise it signs the body in pieces, and an
			// empty body has no length.
			_, err := core.PutObject(ctx, bucket, key, bytes.NewReader(data), int64(len(data)), "", hex.EncodeToString(hash[:]),
				minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true})
			return err
		},
		get: func(ctx context.Context, key string, options minio.GetObjectOptions) (io.ReadCloser, int64, error) {
			body, info, _, err := core.GetObject(ctx, bucket, key, options)
			return body, info.Size, err
		},
		remove: func(ctx context.Context, key string) error {
			return client.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{})
		},
		list: func(ctx context.Context, options minio.ListObjectsOptions) iter.Seq[minio.ObjectInfo] {
			return client.ListObjectsIter(ctx, bucket, options)
		},
	}
}

var _ Blobs = (*S3)(nil)

// OpenS3 returns the blobs of a bucket: s3://bucket/prefix?endpoint=https://host&region=name. The default endpoint is
// Amazon's. The credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), from
// ~/.aws/credentials, or from the machine's role. OpenS3 fails if it cannot reach the bucket.
func OpenS3(ctx context.Context, place string) (*S3, error) {
	s, err := parseS3(place)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s3Limit)
	defer cancel()
	exists, err := s.exists(ctx)
	if err == nil && !exists {
		err = errors.New("there is no such bucket")
	}
	if err != nil {
		return nil, fmt.Errorf("the contents at %s cannot be reached: %w", place, err)
	}
	return s, nil
}

func parseS3(place string) (*S3, error) {
	wrong := func(why string) error {
		if scheme, rest, ok := strings.Cut(place, "@"); ok && strings.Contains(scheme, ":") {
			place = "s3://…@" + rest // the part before the @ may be a secret
		}
		return fmt.Errorf("%q is no place for contents: %s; it is written s3://bucket/prefix?endpoint=https://host&region=name", place, why)
	}
	u, err := url.Parse(place) // its error repeats the place
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return nil, wrong("it names no bucket")
	}
	if u.User != nil {
		return nil, errors.New("the place of the contents holds credentials; put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, wrong(err.Error())
	}
	for name := range query {
		if name != "endpoint" && name != "region" {
			return nil, wrong(fmt.Sprintf("it has an unknown setting %q", name))
		}
	}
	endpoint, err := url.Parse(cmp.Or(query.Get("endpoint"), "https://s3.amazonaws.com"))
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" || strings.Trim(endpoint.Path, "/") != "" {
		return nil, wrong("its endpoint is no URL of a host")
	}
	secure := endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.MaxConnsPerHost = s3Connections
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Timeout: s3Limit / 3}},
		}),
		Secure: secure, Transport: transport, Region: query.Get("region"), MaxRetries: s3Retries,
	})
	if err != nil {
		return nil, wrong(err.Error())
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &S3{requestsOf(client, u.Host), newPlaces(), u.Host, prefix}, nil
}

func (s *S3) key(name string) (string, error) {
	if !ValidName(name) {
		return "", fmt.Errorf("%q is no name of a blob", name)
	}
	return s.prefix + name[:2] + "/" + name, nil
}

// Put stores an object in one request. The signature contains the hash of the bytes. The store answers when the
// object is durable.
func (s *S3) Put(ctx context.Context, name string, data []byte) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	return inTurn(ctx, s.writes, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s3Limit)
		defer cancel()
		return s.failed("written", s.put(ctx, key, data))
	})
}

// Open sends the request for the bytes, so it reports a missing blob itself. Above keptOpen, the reader sends a request for each read.
func (s *S3) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	o := &object{ctx: ctx, store: s, key: key, end: s.places.keep()}
	if o.end != nil {
		err = o.request(0)
	} else {
		err = s.places.turn(ctx, func() error {
			defer o.drop() // only the size is needed
			return o.request(0)
		})
	}
	if err != nil {
		_ = o.Close()
		return nil, err
	}
	return o, nil
}

// Delete removes an object.
func (s *S3) Delete(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s3Limit)
	defer cancel()
	err = s.failed("removed", s.remove(ctx, key))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Each lists the objects page by page. It skips objects that are not blobs.
func (s *S3) Each(ctx context.Context, call func(name string) error) error {
	for after := ""; ; {
		keys, err := s.page(ctx, after)
		if err != nil {
			return err
		}
		for _, key := range keys {
			folder, name, _ := strings.Cut(strings.TrimPrefix(key, s.prefix), "/")
			if !ValidName(name) || name[:2] != folder {
				continue
			}
			if err := call(name); err != nil {
				return err
			}
		}
		if len(keys) < s3Page {
			return nil
		}
		after = keys[len(keys)-1]
	}
}

// page lists the keys that follow a key.
func (s *S3) page(ctx context.Context, after string) (keys []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s3Limit)
	defer cancel()
	for o := range s.list(ctx, minio.ListObjectsOptions{
		Prefix: s.prefix, Recursive: true, StartAfter: after, MaxKeys: s3Page,
	}) {
		if o.Err != nil {
			return nil, s.failed("listed", o.Err)
		}
		if keys = append(keys, o.Key); len(keys) == s3Page {
			break
		}
	}
	return keys, nil
}

// failed translates the store's errors into this package's errors.
func (s *S3) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	answer := minio.ToErrorResponse(err)
	err = fmt.Errorf("a content cannot be %s in s3://%s/%s: %w", what, s.bucket, s.prefix, err)
	switch {
	case answer.Code == minio.NoSuchKey:
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case answer.StatusCode == http.StatusInsufficientStorage, fullCodes[answer.Code]:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case answer.Code == minio.NoSuchBucket, answer.StatusCode == http.StatusForbidden, errors.Is(err, context.Canceled):
		return err // a retry does not help
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// fullCodes are the error codes of stores without space. S3 itself has no such code.
var fullCodes = map[string]bool{
	"XMinioStorageFull": true, "XMinioAdminBucketQuotaExceeded": true, "QuotaExceeded": true, "InsufficientStorage": true, "InsufficientCapacity": true,
}
