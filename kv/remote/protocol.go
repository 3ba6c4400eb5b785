package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// Version identifies the bytes of a key at a server, in the form of
// [kv.Validator]: "etag:…", "modified:…"; "" if the server sends neither.
type Version string

// VersionOf reads the usual headers.
func VersionOf(h http.Header) Version {
	if tag := h.Get("ETag"); tag != "" {
		return Version("etag:" + tag)
	}
	if at := h.Get("Last-Modified"); at != "" {
		return Version("modified:" + at)
	}
	return ""
}

// Condition sets the header If-Match for a strong entity tag (RFC 9110, 8.8.3
// and 13.1.1), so that the server refuses to send another version. Servers may
// ignore it, so answers are checked all the same.
func (v Version) Condition(h http.Header) {
	if len(v) > 6 && v[:6] == `etag:"` {
		h.Set("If-Match", string(v[5:]))
	}
}

// stampOf reads the usual headers. Google's tag of an object with an MD5 sum is that sum,
// but for its JSON interface, which sends the sum in another header.
func stampOf(h http.Header) kv.Stamp {
	at, _ := http.ParseTime(h.Get("Last-Modified")) // zero if it is missing or not a time
	tag := h.Get("ETag")
	for _, list := range h.Values("X-Goog-Hash") {
		for hash := range strings.SplitSeq(list, ",") {
			if sum, ok := strings.CutPrefix(strings.TrimSpace(hash), "md5="); ok {
				tag = TagOfMD5(sum)
			}
		}
	}
	return kv.Stamp{ETag: tag, Modified: at}
}

// TagOfMD5 returns the entity tag of an object whose tag is its MD5 sum, which is given
// in base64; "" if it is not base64.
func TagOfMD5(sum string) string {
	b, err := base64.StdEncoding.DecodeString(sum)
	if err != nil || len(b) == 0 {
		return ""
	}
	return `"` + hex.EncodeToString(b) + `"`
}

// Info is the size and version of a key.
type Info struct {
	Size    int64
	Version Version
	Stamp   kv.Stamp
}

// Protocol makes the requests of one kind of server. Safe for concurrent use.
type Protocol interface {
	// Request makes a request for the value of key: method is GET, HEAD, PUT or
	// DELETE. pin, if not empty, is the wanted version. The error is
	// kv.ErrInvalidKey for a key that no request can name.
	Request(ctx context.Context, method, key string, pin Version) (*http.Request, error)

	// Version reads the headers of an answer.
	Version(h http.Header) Version

	// Missing reports whether an answer means that the key has no value.
	Missing(resp *http.Response) bool

	// Code returns the error code of an answer, or "". It may read from the
	// body, with a bound.
	Code(resp *http.Response) string
}

// Stater is an optional interface of a Protocol that finds a key by other means
// than HEAD.
type Stater interface {
	// Stat returns the size and version of key, or kv.ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)
}

// Head returns the beginning of the body of an answer, which can be read again; nil if
// it cannot be read.
func Head(resp *http.Response) []byte {
	head, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil
	}
	resp.Body = io.NopCloser(bytes.NewReader(head))
	return head
}
