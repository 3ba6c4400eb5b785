package s3

import (
	"cmp"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/serve"
)

// upload is a multipart upload under way.
type upload struct {
	bucket, object string
	used           time.Time
	parts          map[int]*uploadPart
}

type uploadPart struct {
	f   *file
	tag string
}

// Bounds of uploads.
const (
	maxUploads = 256
	maxParts   = 10_000
	staleAfter = 24 * time.Hour
)

var errNoUpload = &apiError{http.StatusNotFound, "NoSuchUpload", "there is no such upload; it may have been completed or aborted"}

func (c *call) createUpload() error {
	if _, _, err := c.session(c.object); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, u := range c.uploads {
		if time.Since(u.used) > staleAfter {
			u.close()
			delete(c.uploads, id)
		}
	}
	if len(c.uploads) >= maxUploads {
		return &apiError{http.StatusServiceUnavailable, "SlowDown", "too many uploads are under way"}
	}
	id := rand.Text()
	c.uploads[id] = &upload{bucket: c.bucket, object: c.object, used: time.Now(), parts: map[int]*uploadPart{}}
	return c.send(http.StatusOK, uploadXML{Bucket: c.bucket, Key: c.object, UploadID: id})
}

// listUploads lists the uploads under way that the client may write, on one page: there are at most
// maxUploads. The time of an upload is the time of its last request. Programs abort old ones.
func (c *call) listUploads() error {
	if err := c.exists(); err != nil {
		return err
	}
	out := uploadsXML{Bucket: c.bucket, Prefix: c.q.Get("prefix"), MaxUploads: maxUploads}
	c.mu.Lock()
	for id, u := range c.uploads {
		if u.bucket == c.bucket && strings.HasPrefix(u.object, out.Prefix) {
			out.Upload = append(out.Upload, openUploadXML{Key: u.object, UploadID: id, Initiated: stamp(u.used), StorageClass: "STANDARD"})
		}
	}
	c.mu.Unlock()
	out.Upload = slices.DeleteFunc(out.Upload, func(u openUploadXML) bool {
		_, _, err := c.session(u.Key)
		return err != nil
	})
	slices.SortFunc(out.Upload, func(a, b openUploadXML) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Initiated, b.Initiated))
	})
	return c.send(http.StatusOK, out)
}

// upload returns the upload of a request. c.mu is held.
func (c *call) upload() (*upload, error) {
	u := c.uploads[c.q.Get("uploadId")]
	if u == nil || u.bucket != c.bucket || u.object != c.object {
		return nil, errNoUpload
	}
	u.used = time.Now()
	return u, nil
}

// uploadPart stores a part: the body of the request, or a range of another object.
func (c *call) uploadPart() error {
	number, err := strconv.Atoi(c.q.Get("partNumber"))
	if err != nil || number < 1 || number > maxParts {
		return invalid("partNumber is a number from 1 to %d", maxParts)
	}
	c.mu.Lock()
	_, err = c.upload()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	sum := md5.New()
	var p *payload
	var f *file
	if c.r.Header.Get("X-Amz-Copy-Source") != "" {
		src, _, err := c.source()
		if err != nil {
			return err
		}
		defer src.v.Release()
		text := c.r.Header.Get("X-Amz-Copy-Source-Range")
		at, n, partial, ok := rangeOf(text, src.val.Size())
		if !ok || text != "" && (!partial || !strings.HasSuffix(text, fmt.Sprintf("-%d", at+n-1))) {
			return invalid("X-Amz-Copy-Source-Range is bytes=FIRST-LAST, within the object")
		}
		f, err = c.spool.fill(c.o.BodyBytes, func(w io.Writer) error {
			_, err := serve.NewContent(c.ctx, src.val, at, n).WriteTo(io.MultiWriter(w, sum))
			return err
		})
		if err != nil {
			return err
		}
	} else if f, p, err = c.body(c.o.BodyBytes, false, sum); err != nil {
		return err
	}
	part := &uploadPart{f: f, tag: `"` + hex.EncodeToString(sum.Sum(nil)) + `"`}
	c.mu.Lock()
	u, err := c.upload()
	if err == nil {
		if old := u.parts[number]; old != nil {
			old.f.close()
		}
		u.parts[number] = part
	}
	c.mu.Unlock()
	if err != nil {
		f.close()
		return err
	}
	if p == nil {
		return c.send(http.StatusOK, copiedXML{XMLName: named("CopyPartResult"), ETag: part.tag, LastModified: stamp(c.now())})
	}
	p.answer(c.w.Header())
	c.w.Header().Set("ETag", part.tag)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// completeUpload makes the parts that the body names an object.
func (c *call) completeUpload() error {
	s, key, err := c.session(c.object)
	if err != nil {
		return err
	}
	var in completeXML
	if err := c.document(&in, true); err != nil {
		return err
	}
	parts, err := c.chosen(&in)
	if err != nil {
		return err
	}
	whole := &payload{size: -1}
	if c.r.Header.Get("X-Amz-Checksum-Type") == "FULL_OBJECT" {
		if err := whole.expectHeaders(c.r.Header); err != nil {
			return err
		}
	}
	f, err := c.spool.fill(c.o.BodyBytes, func(w io.Writer) error {
		for _, part := range parts {
			err := part.bytes(func(b []byte) error {
				whole.hash(b)
				_, err := w.Write(b)
				return err
			})
			if err != nil {
				return err
			}
		}
		return whole.verify()
	})
	if err != nil {
		return err
	}
	defer f.close()
	id, err := c.set(s, key, f)
	if err != nil {
		return err
	}
	c.forget()
	return c.send(http.StatusOK, completedXML{Location: "/" + c.bucket + "/" + serve.EscapePath(c.object), Bucket: c.bucket, Key: c.object, ETag: etag(id)})
}

// chosen returns the parts that a request names.
func (c *call) chosen(in *completeXML) (parts []*file, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, err := c.upload()
	if err != nil {
		return nil, err
	}
	last := 0
	for _, p := range in.Part {
		have := u.parts[p.PartNumber]
		switch {
		case p.PartNumber <= last:
			return nil, &apiError{http.StatusBadRequest, "InvalidPartOrder", "the parts are not in ascending order"}
		case have == nil || strings.Trim(p.ETag, `"`) != strings.Trim(have.tag, `"`):
			return nil, &apiError{http.StatusBadRequest, "InvalidPart", fmt.Sprintf("part %d was not uploaded, or has another ETag", p.PartNumber)}
		}
		last = p.PartNumber
		parts = append(parts, have.f)
	}
	if len(parts) == 0 {
		return nil, &apiError{http.StatusBadRequest, "MalformedXML", "an object has at least one part"}
	}
	return parts, nil
}

// forget ends the upload of a request.
func (c *call) forget() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, err := c.upload()
	if err == nil {
		u.close()
		delete(c.uploads, c.q.Get("uploadId"))
	}
	return err == nil
}

func (c *call) abortUpload() error {
	if !c.forget() {
		return errNoUpload
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (u *upload) close() {
	for _, p := range u.parts {
		p.f.close()
	}
}

// Close removes the files of unfinished uploads.
func (h *Handler) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, u := range h.uploads {
		u.close()
		delete(h.uploads, id)
	}
	if n := h.spool.used.Load(); n != 0 {
		return fmt.Errorf("%d bytes of requests under way: %w", n, os.ErrDeadlineExceeded)
	}
	return nil
}
