package s3

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// found is an object that is read. The conditions of requests compare tag and at.
type found struct {
	v     *serve.View
	val   kv.Value
	key   string
	id    kv.ID
	tag   string    // the ETag, "" without one
	at    time.Time // in whole seconds
	exact bool      // no earlier value has the same time
}

// etag returns the ETag of a content id. The suffix "-1" stands for a multipart upload in
// one part: without it programs take the ETag for the MD5 of the object.
func etag(id kv.ID) string {
	if id == (kv.ID{}) {
		return ""
	}
	return `"` + hex.EncodeToString(id[:]) + `-1"`
}

// find finds an object. Release its view.
func (c *call) find(bucket, name string) (*found, error) {
	v, key, err := c.view(bucket, name)
	if err != nil {
		return nil, err
	}
	f, err := c.in(v, key)
	if err != nil {
		v.Release()
	}
	return f, err
}

// in finds a key in a view. In a session all values are as written, without true
// consolidated metadata: the tree may not be complete, and programs compare their uploads.
func (c *call) in(v *serve.View, key string) (*found, error) {
	f := &found{v: v, key: key}
	value := v.Value
	if v.Session != nil {
		value = v.Locate
	}
	var err error
	if f.val, err = value(c.ctx, key); err != nil {
		return nil, err
	}
	if f.id, err = serve.ContentID(c.ctx, f.val); err != nil {
		return nil, err
	}
	f.tag = etag(f.id)
	if f.at, f.exact, err = v.Written(c.ctx, key); err != nil {
		return nil, err
	}
	if f.at.IsZero() {
		f.at = c.now() // a target can change at any time
	}
	f.at = f.at.UTC().Truncate(time.Second)
	return f, nil
}

// conditions evaluates conditions, whose names follow a prefix, in the order of RFC 9110,
// 13.2.2. A time in the same second decides only if no other value has it.
func (f *found) conditions(head http.Header, prefix string) error {
	after := func(name string) (after, ok bool) {
		t, err := http.ParseTime(head.Get(prefix + name))
		return f.at.After(t) || !f.exact && f.at.Equal(t), err == nil
	}
	if list := head.Values(prefix + "If-Match"); len(list) > 0 {
		if !f.matches(list, false) {
			return errPrecondition
		}
	} else if after, ok := after("If-Unmodified-Since"); ok && after {
		return errPrecondition
	}
	if list := head.Values(prefix + "If-None-Match"); len(list) > 0 {
		if f.matches(list, true) {
			return errNotModified
		}
	} else if after, ok := after("If-Modified-Since"); ok && !after {
		return errNotModified
	}
	return nil
}

// matches reports whether a list of ETags has the ETag of the object. A weak ETag matches
// only if weak is set.
func (f *found) matches(list []string, weak bool) bool {
	for one := range strings.SplitSeq(strings.Join(list, ","), ",") {
		one = strings.TrimSpace(one)
		if rest, ok := strings.CutPrefix(one, "W/"); ok && weak {
			one = rest
		}
		if one == "*" || f.tag != "" && strings.Trim(one, `"`) == strings.Trim(f.tag, `"`) {
			return true
		}
	}
	return false
}

// get answers GET and HEAD of an object.
func (c *call) get() error {
	f, err := c.find(c.bucket, c.object)
	if err != nil {
		return err
	}
	defer f.v.Release()
	head := c.w.Header()
	if f.tag != "" {
		head.Set("ETag", f.tag)
	}
	head.Set("Last-Modified", f.at.Format(http.TimeFormat))
	head.Set("Accept-Ranges", "bytes")
	if err := f.conditions(c.r.Header, ""); err != nil {
		return err
	}
	wanted := c.r.Header.Get("Range")
	if if1 := c.r.Header.Get("If-Range"); if1 != "" {
		if t, err := http.ParseTime(if1); !f.matches([]string{if1}, false) && (err != nil || !f.exact || !f.at.Equal(t)) {
			wanted = ""
		}
	}
	if c.q.Has("partNumber") { // an object has one part
		if wanted = "bytes=0-"; c.q.Get("partNumber") != "1" {
			return &apiError{http.StatusRequestedRangeNotSatisfiable, "InvalidPartNumber", "the object has one part"}
		}
		head.Set("X-Amz-Mp-Parts-Count", "1")
	}
	size := f.val.Size()
	at, n, partial, ok := rangeOf(wanted, size)
	if c.q.Has("partNumber") && size == 0 {
		at, n, partial, ok = 0, 0, false, true
	}
	status := http.StatusOK
	switch {
	case !ok:
		head.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		return &apiError{http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "the range begins behind the end of the object"}
	case partial:
		head.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", at, at+n-1, size))
		status = http.StatusPartialContent
	}
	head.Set("Content-Type", serve.ContentType(f.key))
	for _, name := range []string{"Content-Type", "Content-Disposition", "Content-Encoding", "Content-Language", "Cache-Control", "Expires"} {
		if value := c.q.Get("response-" + strings.ToLower(name)); value != "" && c.claim != nil {
			head.Set(name, value)
		}
	}
	head.Set("Content-Length", strconv.FormatInt(n, 10))
	if c.r.Method == http.MethodHead {
		if err := c.addMD5(f); err != nil {
			return err
		}
		c.w.WriteHeader(status)
		return nil
	}
	out := &late{w: c.w, status: status}
	switch _, err := serve.NewContent(c.ctx, f.val, at, n).WriteTo(out); {
	case err != nil && !out.sent:
		return err
	case err != nil:
		if !out.lost {
			c.errorOf(c.object, err) // for the log
		}
		panic(http.ErrAbortHandler) // so that the client notices the missing bytes
	}
	out.begin() // of an object without bytes
	return nil
}

// rangeOf reads the header Range. One that cannot be read, or that has several ranges, is
// ignored, as S3 does; ok is false for one outside of the object.
func rangeOf(text string, size int64) (at, n int64, partial, ok bool) {
	spec, isBytes := strings.CutPrefix(text, "bytes=")
	first, last, hasDash := strings.Cut(strings.TrimSpace(spec), "-")
	from, ok1 := number(first)
	to, ok2 := number(last)
	switch {
	case !isBytes || !hasDash || !ok1 && first != "" || !ok2 && last != "" || !ok1 && !ok2 || ok1 && ok2 && to < from:
		return 0, size, false, true
	case first == "": // the last bytes
		n = min(to, size)
		return size - n, n, true, n > 0
	case from >= size:
		return 0, 0, true, false
	case last == "":
		to = size - 1
	}
	return from, min(to, size-1) - from + 1, true, true
}

// number reads decimal digits; a number that is too large is the largest.
func number(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n = math.MaxInt64
	}
	return n, true
}

// late sends the status with the first bytes, so that an object which cannot be read is
// an error.
type late struct {
	w      http.ResponseWriter
	status int
	sent   bool
	lost   bool // the client takes nothing more
}

func (l *late) begin() {
	if !l.sent {
		l.sent = true
		l.w.WriteHeader(l.status)
	}
}

// Write implements io.Writer.
func (l *late) Write(b []byte) (int, error) {
	l.begin()
	n, err := l.w.Write(b)
	l.lost = l.lost || err != nil
	return n, err
}

// sums caches the MD5 of values.
type sums = lru.Cache[kv.ID, [md5.Size]byte]

func newSums() *sums {
	return lru.New[kv.ID](8<<20, func([md5.Size]byte) int64 { return 128 })
}

// addMD5 adds the MD5 of the object for two programs that compare it when they
// synchronize: rclone and s3cmd, which sends no User-Agent. Where an ETag is not an MD5,
// they look for it among the metadata.
func (c *call) addMD5(f *found) error {
	agent := c.r.UserAgent()
	if agent != "" && !strings.HasPrefix(agent, "rclone/") {
		return nil
	}
	read := func() (sum [md5.Size]byte, err error) {
		h := md5.New()
		_, err = serve.NewContent(c.ctx, f.val, 0, f.val.Size()).WriteTo(h)
		return [md5.Size]byte(h.Sum(nil)), err
	}
	sum, err := [md5.Size]byte{}, error(nil)
	if f.id != (kv.ID{}) {
		sum, err = c.sums.Get(c.ctx, f.id, read)
	} else {
		sum, err = read()
	}
	if err != nil {
		return err
	}
	if agent == "" {
		c.w.Header().Set("X-Amz-Meta-S3cmd-Attrs", "md5:"+hex.EncodeToString(sum[:]))
	} else {
		c.w.Header().Set("X-Amz-Meta-Md5chksum", base64.StdEncoding.EncodeToString(sum[:]))
	}
	return nil
}

// notFound reports whether an error means that a key has no value.
func notFound(err error) bool {
	return errors.Is(err, kv.ErrNotFound) && !errors.Is(err, serve.ErrNoDatabase)
}
