package s3

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// session finds the session that an object is written in. It is returned too with the
// error of a key that cannot be stored.
func (c *call) session(object string) (*serve.Session, string, error) {
	rev, key, err := split(object)
	if err != nil {
		return nil, "", err
	}
	id, ok := strings.CutPrefix(rev, serve.SessionPrefix)
	if !ok {
		return nil, "", errWhere
	}
	s, err := c.t.Session(c.ctx, c.who, c.bucket, id)
	if err != nil {
		return nil, "", err
	}
	return s, key, validKey(key)
}

// validKey refuses keys that the HTTP server refuses.
func validKey(key string) error {
	if err := kv.ValidKey(key); err != nil {
		return err
	}
	for name := range strings.SplitSeq(key, "/") {
		if !serve.InPath(name) {
			return fmt.Errorf("%w: it has the name %q", errKey, name)
		}
	}
	return nil
}

// body reads the body of a request, and verifies it. whole is as for newPayload. The bytes
// are written to more, too.
func (c *call) body(limit int64, whole bool, more ...io.Writer) (*file, *payload, error) {
	p, err := newPayload(c.r, c.claim, whole)
	if err != nil {
		return nil, nil, err
	}
	if p.size > limit {
		return nil, nil, fmt.Errorf("%w: a body has at most %d bytes", kv.ErrTooLarge, limit)
	}
	f, err := c.spool.fill(limit, func(w io.Writer) error {
		_, err := io.Copy(io.MultiWriter(append(more, w)...), p)
		return err
	})
	return f, p, err
}

// maxDocument bounds the documents of requests.
const maxDocument = 4 << 20

// document reads the XML body of a request.
func (c *call) document(into any, whole bool) error {
	f, _, err := c.body(maxDocument, whole)
	if err != nil {
		return err
	}
	defer f.close()
	return f.bytes(func(b []byte) error {
		if xml.Unmarshal(b, into) != nil {
			return &apiError{http.StatusBadRequest, "MalformedXML", "the body is not the expected document"}
		}
		return nil
	})
}

// put answers PUT of an object: of its bytes, of a copy, or of a marker of a directory.
func (c *call) put() error {
	s, key, err := c.session(c.object)
	marker := s != nil && (key == "" || strings.HasSuffix(key, "/"))
	if err != nil && !marker {
		return err
	}
	if c.r.Header.Get("X-Amz-Copy-Source") != "" && !marker {
		return c.copyObject(s, key)
	}
	f, p, err := c.body(c.o.BodyBytes, false)
	if err != nil {
		return err
	}
	defer f.close()
	if marker {
		if f.size > 0 {
			return fmt.Errorf("%w: it ends with a slash, and the body is not empty", errKey)
		}
		// A directory exists as long as it has keys. Programs make it first.
		c.w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	id, err := c.set(s, key, f)
	if err != nil {
		return err
	}
	p.answer(c.w.Header())
	c.w.Header().Set("ETag", etag(id))
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// set stores a body under the conditions of its request.
func (c *call) set(s *serve.Session, key string, f *file) (kv.ID, error) {
	want, err := c.expect(s, key, c.r.Header)
	if err != nil {
		return kv.ID{}, err
	}
	var id kv.ID
	err = f.bytes(func(p []byte) error {
		id, err = s.Engine().SetIf(c.ctx, key, p, want)
		return err
	})
	if err != nil {
		return id, err
	}
	c.audit("PUT", c.object, f.size)
	return id, nil
}

// expect compares the conditions of a write with the current value, and returns the
// condition under which the session writes.
func (c *call) expect(s *serve.Session, key string, head http.Header) (want engine.Expect, err error) {
	if !slices.ContainsFunc([]string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}, func(name string) bool { return head.Get(name) != "" }) {
		return want, nil
	}
	if tag := head.Get("If-None-Match"); tag != "" && tag != "*" {
		return want, &apiError{http.StatusNotImplemented, "NotImplemented", "If-None-Match of a write can only be *"}
	}
	v := s.View()
	f, err := c.in(v, key)
	if notFound(err) {
		if head.Get("If-Match") != "" {
			return want, err
		}
		return engine.Expect{Absent: true}, nil
	}
	if err != nil {
		return want, err
	}
	if f.conditions(head, "") != nil {
		return want, errPrecondition
	}
	stored, err := kv.Locate(c.ctx, v, key)
	if err != nil {
		return want, err
	}
	if want.ID = stored.ID(); want.ID == (kv.ID{}) {
		return want, &apiError{http.StatusNotImplemented, "NotImplemented", "a condition on a value that has no identity"}
	}
	return want, nil
}

func (c *call) audit(method, object string, n int64) {
	c.o.Log.InfoContext(c.ctx, "write", "method", method, "database", c.bucket, "who", c.who.Name, "object", object, "bytes", n)
}

// delete answers DELETE of an object.
func (c *call) delete() error {
	if err := c.remove(c.object, c.r.Header); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove deletes an object under conditions.
func (c *call) remove(object string, conditions http.Header) error {
	s, key, err := c.session(object)
	if s != nil && err != nil {
		// A key that cannot be stored does not exist. Clients delete such markers of
		// directories.
		return nil
	}
	var want engine.Expect
	if err == nil {
		want, err = c.expect(s, key, conditions)
	}
	if err == nil && !want.Absent {
		err = s.Engine().DeleteIf(c.ctx, key, want)
	}
	if err == nil {
		c.audit("DELETE", object, 0)
	}
	return err
}

// deleteObjects deletes the objects that are named in the body.
func (c *call) deleteObjects() error {
	var in deleteXML
	if err := c.document(&in, false); err != nil {
		return err
	}
	if len(in.Object) > maxPage {
		return invalid("a request deletes at most %d objects", maxPage)
	}
	var out deletedXML
	for _, o := range in.Object {
		conditions := http.Header{}
		if o.ETag != "" {
			conditions.Set("If-Match", o.ETag)
		}
		if err := c.remove(o.Key, conditions); err != nil {
			e := c.errorOf(o.Key, err)
			out.Error = append(out.Error, struct{ Key, Code, Message string }{o.Key, e.code, e.message})
		} else if !in.Quiet {
			out.Deleted = append(out.Deleted, struct{ Key string }{o.Key})
		}
	}
	return c.send(http.StatusOK, out)
}

// source finds the object that a request copies, under its conditions. Release its view.
func (c *call) source() (*found, string, error) {
	text, version, _ := strings.Cut(c.r.Header.Get("X-Amz-Copy-Source"), "?versionId=")
	name, err := url.PathUnescape(text)
	from, object, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	if err != nil || !ok || object == "" || version != "" && version != "null" {
		return nil, "", invalid("X-Amz-Copy-Source is BUCKET/KEY")
	}
	f, err := c.find(from, object)
	if err != nil {
		return nil, "", err
	}
	if f.conditions(c.r.Header, "X-Amz-Copy-Source-") != nil {
		f.v.Release()
		return nil, "", errPrecondition
	}
	return f, from + "/" + object, nil
}

// copyObject copies an object. A copy to itself, by which programs change metadata, writes
// nothing.
func (c *call) copyObject(s *serve.Session, key string) error {
	src, name, err := c.source()
	if err != nil {
		return err
	}
	defer src.v.Release()
	out := copiedXML{XMLName: named("CopyObjectResult"), ETag: src.tag, LastModified: stamp(src.at)}
	if name == c.bucket+"/"+c.object {
		if _, err := c.expect(s, key, c.r.Header); err != nil {
			return err
		}
		return c.send(http.StatusOK, out)
	}
	f, err := c.spool.fill(c.o.BodyBytes, func(w io.Writer) error {
		_, err := serve.NewContent(c.ctx, src.val, 0, src.val.Size()).WriteTo(w)
		return err
	})
	if err != nil {
		return err
	}
	defer f.close()
	id, err := c.set(s, key, f)
	if err != nil {
		return err
	}
	out.ETag, out.LastModified = etag(id), stamp(c.now())
	return c.send(http.StatusOK, out)
}
