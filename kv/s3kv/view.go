package s3kv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// Options say how a bucket is reached. nil and the zero value work; see the
// package's Configuration.
type Options struct {
	// Endpoint is the URL of a server that is not Amazon's.
	Endpoint string
	// Region is where the bucket is.
	Region string
	// Profile is the section of the configuration files; default AWS_PROFILE.
	Profile string
	// Anonymous sends requests without credentials.
	Anonymous bool
	// VirtualHost puts the bucket into the host's name at an Endpoint too.
	VirtualHost bool

	// Remote says how requests are sent, tried again and merged. Its Sign and
	// Redirects are not used.
	Remote remote.Options
	// Forbidden takes answer 403 for a missing key. S3 gives it for missing keys
	// if the caller may not list the bucket, and for all keys if the caller may
	// not read.
	Forbidden bool
}

// View is a bucket. Safe for concurrent use; it needs no Close. A listing sends a request
// for every thousand keys.
type View struct {
	*remote.Bucket
	b *bucket
}

var (
	_ kv.Store        = (*View)(nil)
	_ kv.Locator      = (*View)(nil)
	_ kv.BatchReader  = (*View)(nil)
	_ kv.DirLister    = (*View)(nil)
	_ kv.BatchDeleter = (*View)(nil)
)

// Open returns the view of a bucket without asking the server anything.
func Open(name string, o *Options) (*View, error) {
	if err := s3utils.CheckValidBucketName(name); err != nil {
		return nil, fmt.Errorf("s3kv: bucket %.80q: %w", name, err)
	}
	var c Options
	if o != nil {
		c = *o
	}
	b := &bucket{name: name, o: c, long: partsFrom, part: partBytes}
	if err := b.configure(); err != nil {
		return nil, fmt.Errorf("s3kv: %w", err)
	}
	r := c.Remote
	r.Redirects, r.Sign = -1, nil
	r.Credentials = func(*url.URL) string {
		return "credentials are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile AWS_PROFILE of ~/.aws"
	}
	r.Transport = signing{b, remote.Transport(&r)}
	b.c = remote.NewClient(&r)
	return &View{&remote.Bucket{
		Objects: remote.NewObjects(b.c, b), Listing: remote.Listing{Name: "bucket " + b.name, Page: b.page, Valid: validKey},
		Put: b.put, If: condition, Tag: entityTag,
	}, b}, nil
}

// bucket is the remote.Protocol of one bucket.
type bucket struct {
	name     string
	o        Options
	c        *remote.Client
	at       place
	identity *identity
	// long is the length from which on values are uploaded in parts of length
	// part.
	long, part int64
}

var _ remote.Protocol = (*bucket)(nil)

func (b *bucket) Request(ctx context.Context, method, key string, pin remote.Version) (*http.Request, error) {
	if err := validKey(key); err != nil {
		return nil, err
	}
	req, err := b.request(ctx, method, key, nil, nil)
	if err == nil {
		pin.Condition(req.Header)
	}
	return req, err
}

func validKey(key string) error {
	if err := kv.ValidKey(key); err != nil {
		return err
	}
	if len(key) > 1024 {
		return fmt.Errorf("%w: %d bytes, S3 allows 1024", kv.ErrInvalidKey, len(key))
	}
	for name := range strings.SplitSeq(key, "/") {
		if name == "." || name == ".." {
			return fmt.Errorf("%w: %q: servers resolve the name %q", kv.ErrInvalidKey, key, name)
		}
	}
	return nil
}

// request makes a request that is not signed yet. key "" is the bucket.
func (b *bucket) request(ctx context.Context, method, key string, query url.Values, value []byte) (*http.Request, error) {
	u := b.at.url(b.name, b.at.region())
	u.Path += key
	u.RawPath = s3utils.EncodePath(u.Path) // the form that is signed
	u.RawQuery = s3utils.QueryEncode(query)
	var body io.Reader
	if value != nil {
		body = bytes.NewReader(value)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://unset/", body)
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = u, u.Host
	sum := sha256.Sum256(value)
	req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	return req, nil
}

// put makes the request that sets a key. It reads the value for its hash, which the server compares.
func (b *bucket) put(ctx context.Context, key string, value kv.Value) (*http.Request, error) {
	req, err := b.request(ctx, http.MethodPut, key, nil, nil)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if err := kv.Pieces(ctx, value, 0, value.Size(), func(p []byte) error {
		_, err := sum.Write(p)
		return err
	}); err != nil {
		return nil, err
	}
	req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum.Sum(nil)))
	remote.Body(req, value)
	return req, nil
}

// condition adds a condition on the entity tag of an object (RFC 9110, 13.1).
func condition(req *http.Request, tag kv.Tag, same bool) {
	switch {
	case same && tag == kv.NoValue:
		req.Header.Set("If-None-Match", "*")
	case same:
		req.Header.Set("If-Match", string(tag))
	default:
		req.Header.Set("If-None-Match", string(tag))
	}
}

// entityTag returns that of an object. A weak one does not tell versions apart.
func entityTag(resp *http.Response) kv.Tag {
	tag := resp.Header.Get("ETag")
	if strings.HasPrefix(tag, "W/") || len(tag) > 1<<10 {
		return ""
	}
	return kv.Tag(tag)
}

func (b *bucket) Version(h http.Header) remote.Version { return remote.VersionOf(h) }

func (b *bucket) Missing(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusNotFound:
		// A missing bucket or an unknown access key is an error, not a missing
		// key. HEAD does not distinguish them.
		if resp.Request.Method == http.MethodHead {
			return true
		}
		code := b.Code(resp)
		return code == "" || code == "NoSuchKey" || code == "NoSuchVersion" || code == "NotFound"
	case http.StatusForbidden:
		return b.o.Forbidden
	}
	return false
}

func (b *bucket) Code(resp *http.Response) string {
	var answer struct{ Code string }
	if xml.Unmarshal(remote.Head(resp), &answer) != nil || len(answer.Code) > 100 {
		return ""
	}
	return answer.Code
}

// Set implements [kv.Writer]: with one request, or for values over 128 MiB in
// parts, several at a time. Either way the key has the whole value or its old
// one.
func (v *View) Set(ctx context.Context, key string, value []byte) error {
	if int64(len(value)) <= v.b.long {
		return v.Bucket.Set(ctx, key, value)
	}
	if err := validKey(key); err != nil {
		return err
	}
	return v.b.setInParts(ctx, key, value)
}
