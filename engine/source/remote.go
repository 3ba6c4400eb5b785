package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv/gcskv"
	"github.com/zarrdb/zarrdb/kv/httpkv"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/kv/s3kv"
)

// RemoteOptions say how the roots of servers ask them. nil and the zero value
// work.
type RemoteOptions struct {
	// Requests configures how requests are sent, repeated and merged.
	Requests remote.Options
	// Forbidden takes the answer 403 for a missing key, as buckets give it
	// that are read without the right to list. See [httpkv.Options].
	Forbidden bool
}

// RemoteRoots returns the roots of servers by scheme, for [Adapters.ReplaceRoot].
func RemoteRoots(o *RemoteOptions) map[string]Root {
	var c RemoteOptions
	if o != nil {
		c = *o
	}
	return map[string]Root{
		"http":  c.openHTTP,
		"https": c.openHTTP,
		"s3":    c.openS3,
		"gs":    c.openGS,
	}
}

// ofReference is the context key for opening a root on behalf of a reference.
// The rules have checked its URL, so it must not be redirected to another host.
type ofReference struct{}

// openHTTP opens http://host/path/name as the key "name" or the keys below it,
// in the view of http://host/path/. The query goes with every request.
func (o RemoteOptions) openHTTP(ctx context.Context, _ *Env, part zurl.Part) (Place, error) {
	i := strings.LastIndexByte(part.Path, '/') + 1
	last := part.Path[i:]
	name, err := url.PathUnescape(last)
	if err != nil || strings.Contains(name, "/") {
		return Place{}, fmt.Errorf("%w: the name %q", ErrFormat, last)
	}
	c := httpkv.Options{Remote: o.Requests, Forbidden: o.Forbidden, Authorization: authorization(part.Scheme, part.Host)}
	c.Remote.Credentials = howToAuthorize
	if ctx.Value(ofReference{}) != nil {
		c.Remote.StayOnHost = true
	}
	if name != "" && httpkv.Escape(name) != last {
		c.Spelled = map[string]string{name: last}
	}
	part.Path = part.Path[:i]
	view, err := httpkv.Open(part.String(), &c)
	if err != nil {
		return Place{}, err
	}
	at := Place{View: view, Path: name}
	if name == "" {
		at.Kind = Directory
	}
	if ctx.Value(ofReference{}) == nil && servedPath.MatchString(part.Path+last) {
		listed, err := view.Listed(ctx)
		if err != nil {
			return Place{}, err
		}
		if listed != nil {
			at.View = listed
		}
	}
	return at, nil
}

// servedPath matches the paths of versions that zarrdb serve serves: /DB/v/REV/….
var servedPath = regexp.MustCompile(`/[^/]+/v[23]?/[^/]`)

// openS3 opens s3://bucket/path.
func (o RemoteOptions) openS3(_ context.Context, _ *Env, part zurl.Part) (Place, error) {
	view, err := s3kv.Open(part.Host, &s3kv.Options{Remote: o.Requests, Forbidden: o.Forbidden})
	if err != nil {
		return Place{}, err
	}
	return placeIn(view, part)
}

// openGS opens gs://bucket/path.
func (o RemoteOptions) openGS(_ context.Context, _ *Env, part zurl.Part) (Place, error) {
	view, err := gcskv.Open(part.Host, &gcskv.Options{Remote: o.Requests, Forbidden: o.Forbidden})
	if err != nil {
		return Place{}, err
	}
	return placeIn(view, part)
}

// ServerOf names the server of a URL that does not name it itself.
func ServerOf(url string) string {
	if strings.HasPrefix(url, "s3:") {
		return s3kv.Endpoint()
	}
	return ""
}

// Unreachable reports whether an error of a remote is that of a network, a server or a mount that is not there, and not an answer.
func Unreachable(err error) bool {
	var e *remote.Error
	if errors.As(err, &e) {
		return e.Status == 0 || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests || e.Status >= 500
	}
	var away interface{ Unreachable() bool }
	return errors.As(err, &away) && away.Unreachable()
}
