package gcskv

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// Options say how a bucket is reached. nil and the zero value work; see the
// package's Configuration.
type Options struct {
	// Endpoint is the URL of a server that is not Google's. It is asked without
	// credentials.
	Endpoint string
	// Anonymous sends requests without credentials.
	Anonymous bool

	// Remote says how requests are sent, tried again and merged. Its Sign and
	// Redirects are not used.
	Remote remote.Options
	// Forbidden takes answers 401 and 403 for a missing key. GCS gives them for
	// missing keys if the caller may not list the bucket, and for all keys if
	// the caller may not read.
	Forbidden bool
}

// View is a bucket. Safe for concurrent use; it needs no Close. A listing sends a request
// for every thousand keys.
type View struct{ *remote.Bucket }

var (
	_ kv.Store        = (*View)(nil)
	_ kv.Locator      = (*View)(nil)
	_ kv.BatchReader  = (*View)(nil)
	_ kv.DirLister    = (*View)(nil)
	_ kv.BatchDeleter = (*View)(nil)
)

// Open returns the view of a bucket without asking the server anything.
func Open(name string, o *Options) (*View, error) {
	if len(name) < 3 || len(name) > 222 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return nil, fmt.Errorf("gcskv: bucket %.80q: no valid name", name)
	}
	b := &bucket{name: name}
	if o != nil {
		b.o = *o
	}
	if err := b.configure(); err != nil {
		return nil, fmt.Errorf("gcskv: %w", err)
	}
	b.o.Remote.Redirects = -1
	b.o.Remote.Credentials = func(*url.URL) string {
		return "credentials are read from GOOGLE_OAUTH_ACCESS_TOKEN, the file GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login"
	}
	b.c = remote.NewClient(&b.o.Remote)
	return &View{&remote.Bucket{
		Objects: remote.NewObjects(b.c, b), Listing: remote.Listing{Name: "bucket " + b.name, Page: b.page, Valid: validKey},
		Put: b.put, If: condition, Tag: tagOf,
	}}, nil
}

// bucket is the remote.Protocol of one bucket.
type bucket struct {
	name string
	o    Options
	base string // without a slash at its end
	c    *remote.Client
}

var (
	_ remote.Protocol = (*bucket)(nil)
	_ remote.Stater   = (*bucket)(nil)
)

func yes(name string) bool {
	return slices.Contains([]string{"yes", "true", "1"}, strings.ToLower(os.Getenv(name)))
}

// configure fills in what the options leave open.
func (b *bucket) configure() error {
	b.o.Remote.Sign = nil
	b.base = "https://storage.googleapis.com"
	if e := cmp.Or(b.o.Endpoint, os.Getenv("STORAGE_EMULATOR_HOST")); e != "" {
		if !strings.Contains(e, "://") {
			e = "http://" + e
		}
		u, err := url.Parse(e)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return errors.New("the endpoint is not an http or https URL")
		}
		b.base = u.Scheme + "://" + u.Host
		return nil
	}
	if b.o.Anonymous || yes("GS_NO_SIGN_REQUEST") {
		return nil
	}
	b.o.Remote.Sign = sign
	return nil
}

// request makes a request. path follows the name of the API.
func (b *bucket) request(ctx context.Context, method, path string, query url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("gcskv: %w: it makes no URL", kv.ErrInvalidKey)
	}
	return req, nil
}

// object is the path of a key.
func (b *bucket) object(key string) string {
	return "/storage/v1/b/" + b.name + "/o/" + url.PathEscape(key)
}

func (b *bucket) Request(ctx context.Context, method, key string, pin remote.Version) (*http.Request, error) {
	if err := validKey(key); err != nil {
		return nil, err
	}
	if method == http.MethodDelete {
		return b.request(ctx, method, b.object(key), nil)
	}
	query := url.Values{"alt": {"media"}}
	if g, ok := strings.CutPrefix(string(pin), "generation:"); ok {
		query.Set("ifGenerationMatch", g)
	}
	req, err := b.request(ctx, method, b.object(key), query)
	if err == nil {
		// Without this header the server decompresses objects stored with gzip.
		req.Header.Set("Accept-Encoding", "gzip")
	}
	return req, err
}

func validKey(key string) error {
	if err := kv.ValidKey(key); err != nil {
		return err
	}
	if len(key) > 1024 || key == "." || key == ".." {
		return fmt.Errorf("%w: %.200q cannot be the name of an object", kv.ErrInvalidKey, key)
	}
	return nil
}

func (b *bucket) Version(h http.Header) remote.Version {
	if g := h.Get("X-Goog-Generation"); g != "" {
		return remote.Version("generation:" + g)
	}
	return ""
}

func (b *bucket) Missing(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusNotFound:
		// A missing bucket is an error, not a missing key.
		return !bytes.Contains(remote.Head(resp), []byte("bucket does not exist"))
	case http.StatusUnauthorized, http.StatusForbidden:
		return b.o.Forbidden
	}
	return false
}

func (b *bucket) Code(resp *http.Response) string {
	var answer struct {
		Error struct{ Errors []struct{ Reason string } }
	}
	if json.Unmarshal(remote.Head(resp), &answer) != nil || len(answer.Error.Errors) == 0 || len(answer.Error.Errors[0].Reason) > 100 {
		return ""
	}
	return answer.Error.Errors[0].Reason
}

// maxAnswer bounds an answer in JSON.
const maxAnswer = 16 << 20

// ask sends a request whose answer is JSON.
func (b *bucket) ask(ctx context.Context, path string, query url.Values, answer any) error {
	return b.c.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return b.request(ctx, http.MethodGet, path, query)
	}, func(resp *http.Response) error {
		switch {
		case strings.Contains(path, "/o/") && b.Missing(resp):
			return kv.ErrNotFound
		case resp.StatusCode != http.StatusOK:
			return b.c.Failed(resp, b.Code(resp))
		}
		body := &io.LimitedReader{R: resp.Body, N: maxAnswer}
		if err := json.NewDecoder(body).Decode(answer); err != nil {
			if body.N <= 0 {
				err = errors.New("it is too long")
			}
			return fmt.Errorf("%w: malformed: %w", remote.ErrAnswer, err)
		}
		return nil
	})
}

func (b *bucket) Stat(ctx context.Context, key string) (remote.Info, error) {
	if err := validKey(key); err != nil {
		return remote.Info{}, err
	}
	var o struct {
		Size       int64 `json:",string"`
		Generation string
		MD5Hash    string
		Updated    time.Time
	}
	if err := b.ask(ctx, b.object(key), url.Values{"fields": {"size,generation,md5Hash,updated"}}, &o); err != nil {
		return remote.Info{}, err
	}
	if o.Size < 0 || o.Generation == "" {
		return remote.Info{}, fmt.Errorf("%w: an object of %d bytes, generation %.40q", remote.ErrAnswer, o.Size, o.Generation)
	}
	return remote.Info{
		Size: o.Size, Version: remote.Version("generation:" + o.Generation),
		Stamp: kv.Stamp{ETag: remote.TagOfMD5(o.MD5Hash), Modified: o.Updated},
	}, nil
}

// page asks for one page.
func (b *bucket) page(ctx context.Context, q remote.Query) (*remote.Page, error) {
	query := url.Values{"fields": {"items(name),prefixes,nextPageToken"}, "maxResults": {"1000"}}
	q.Parameters(query, "startOffset", "pageToken")
	var r struct {
		Items         []struct{ Name string }
		Prefixes      []string
		NextPageToken string
	}
	if err := b.ask(ctx, "/storage/v1/b/"+b.name+"/o", query, &r); err != nil {
		return nil, err
	}
	p := &remote.Page{Prefixes: r.Prefixes, Next: r.NextPageToken}
	for _, i := range r.Items {
		p.Keys = append(p.Keys, i.Name)
	}
	return p, nil
}

// put makes the request that sets a key.
func (b *bucket) put(ctx context.Context, key string, value kv.Value) (*http.Request, error) {
	query := url.Values{"uploadType": {"media"}, "name": {key}, "fields": {"generation"}}
	req, err := b.request(ctx, http.MethodPost, "/upload/storage/v1/b/"+b.name+"/o", query)
	if err == nil {
		remote.Body(req, value)
	}
	return req, err
}

// condition adds a condition on the generation of an object; 0 is that of none.
func condition(req *http.Request, tag kv.Tag, same bool) {
	query := req.URL.Query()
	if same {
		query.Set("ifGenerationMatch", cmp.Or(string(tag), "0"))
	} else {
		query.Set("ifGenerationNotMatch", string(tag))
	}
	req.URL.RawQuery = query.Encode()
}

// tagOf returns the generation of the object that an answer is about.
func tagOf(resp *http.Response) kv.Tag {
	var o struct{ Generation string }
	if resp.Request.Method == http.MethodGet {
		o.Generation = resp.Header.Get("X-Goog-Generation")
	} else if json.Unmarshal(remote.Head(resp), &o) != nil {
		return ""
	}
	if strings.Trim(o.Generation, "0123456789") != "" || o.Generation == "0" {
		return ""
	}
	return kv.Tag(o.Generation)
}
