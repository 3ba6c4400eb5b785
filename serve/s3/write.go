package s3

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rclone/gofakes3"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// session finds the session that an object is written in. It is returned too with the
// error of a key that cannot be stored.
func (b backend) session(ctx context.Context, bucket, object string) (*serve.Session, string, error) {
	rev, key, err := split(object)
	if err != nil {
		return nil, "", err
	}
	id, ok := strings.CutPrefix(rev, serve.SessionPrefix)
	if !ok {
		return nil, "", errWhere
	}
	s, err := b.h.t.Session(ctx, who(ctx), bucket, id)
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
		if name == "" || name == "." || name == ".." {
			return fmt.Errorf("%w: it has the name %q", errKey, name)
		}
	}
	return nil
}

func (b backend) PutObject(ctx context.Context, bucket, name string, _ map[string]string, input io.Reader, size int64) (gofakes3.PutObjectResult, error) {
	s, key, err := b.session(ctx, bucket, name)
	if err != nil {
		return gofakes3.PutObjectResult{}, b.fail(bucket, name, err)
	}
	f, err := b.h.spool.fill(sent{input}, size, b.h.o.BodyBytes)
	if err != nil {
		return gofakes3.PutObjectResult{}, b.fail(bucket, name, err)
	}
	defer f.close()
	id, err := b.set(ctx, s, bucket, name, key, f)
	if err != nil {
		return gofakes3.PutObjectResult{}, b.fail(bucket, name, err)
	}
	return gofakes3.PutObjectResult{ETag: quoted(id)}, nil
}

// set stores a body under the conditions of its request.
func (b backend) set(ctx context.Context, s *serve.Session, bucket, name, key string, f *file) (kv.ID, error) {
	want, err := b.expect(ctx, s, key)
	if err != nil {
		return kv.ID{}, err
	}
	var id kv.ID
	err = f.bytes(func(p []byte) error {
		id, err = s.Engine().SetIf(ctx, key, p, want)
		return err
	})
	if err != nil {
		return id, err
	}
	b.audit(ctx, "PUT", bucket, name, f.size)
	if serve.CarriesCopies(key) {
		if val, err := s.View().Value(ctx, key); err == nil {
			id, _ = serve.ContentID(ctx, val) // as a read returns it
		}
	}
	return id, nil
}

// expect compares the conditions of a write with the current value, and returns
// the condition under which the session writes.
func (b backend) expect(ctx context.Context, s *serve.Session, key string) (want engine.Expect, err error) {
	if !gofakes3.HasWriteConditions(ctx) {
		return want, nil
	}
	v := s.View()
	val, err := v.Value(ctx, key)
	exists := err == nil
	tag := ""
	switch {
	case exists:
		id, err := serve.ContentID(ctx, val)
		if err != nil {
			return want, err
		}
		tag = hex.EncodeToString(id[:])
	case !errors.Is(err, kv.ErrNotFound):
		return want, err
	}
	if err := gofakes3.CheckWriteConditions(ctx, exists, tag); err != nil {
		return want, err
	}
	if !exists {
		return engine.Expect{Absent: true}, nil
	}
	stored, err := kv.Locate(ctx, v, key)
	if err != nil {
		return want, err
	}
	return engine.Expect{ID: stored.ID()}, nil
}

func (b backend) audit(ctx context.Context, method, bucket, name string, n int64) {
	b.h.o.Log.InfoContext(ctx, "write", "method", method, "database", bucket, "who", who(ctx).Name, "object", name, "bytes", n)
}

func quoted(id kv.ID) string { return `"` + hex.EncodeToString(id[:]) + `"` }

func (b backend) DeleteObject(ctx context.Context, bucket, name string) (gofakes3.ObjectDeleteResult, error) {
	return gofakes3.ObjectDeleteResult{}, b.fail(bucket, name, b.remove(ctx, bucket, name))
}

func (b backend) remove(ctx context.Context, bucket, name string) error {
	s, key, err := b.session(ctx, bucket, name)
	if s != nil && err != nil {
		// A key that cannot be stored does not exist. Clients delete such markers of
		// directories.
		return nil
	}
	if err == nil {
		err = s.Engine().DeleteIf(ctx, key, engine.Expect{})
	}
	if err == nil {
		b.audit(ctx, "DELETE", bucket, name, 0)
	}
	return err
}

func (b backend) DeleteMulti(ctx context.Context, bucket string, names ...string) (out gofakes3.MultiDeleteResult, err error) {
	for _, name := range names {
		if err := b.remove(ctx, bucket, name); err != nil {
			result := gofakes3.ErrorResult{Key: name, Code: "AccessDenied", Message: err.Error()}
			if !errors.Is(err, serve.ErrDenied) && !errors.Is(err, errWhere) {
				result = gofakes3.ErrorResultFromError(b.fail(bucket, name, err))
				result.Key = name
			}
			out.Error = append(out.Error, result)
			continue
		}
		out.Deleted = append(out.Deleted, gofakes3.ObjectID{Key: name})
	}
	return out, nil
}

func (b backend) CopyObject(ctx context.Context, fromBucket, from, bucket, name string, _ map[string]string) (out gofakes3.CopyObjectResult, err error) {
	s, key, err := b.session(ctx, bucket, name)
	if err != nil {
		return out, b.fail(bucket, name, err)
	}
	src, err := b.GetObject(ctx, fromBucket, from, nil)
	if err != nil {
		return out, err
	}
	defer src.Contents.Close()
	f, err := b.h.spool.fill(src.Contents, src.Size, b.h.o.BodyBytes)
	if err != nil {
		return out, b.fail(bucket, name, err)
	}
	defer f.close()
	id, err := b.set(ctx, s, bucket, name, key, f)
	return gofakes3.CopyObjectResult{ETag: quoted(id), LastModified: gofakes3.NewContentTime(time.Now().UTC())}, b.fail(bucket, name, err)
}

// upload is a multipart upload under way.
type upload struct {
	bucket, name string
	who          *serve.Principal
	used         time.Time
	parts        map[int]*uploadPart
}

type uploadPart struct {
	f   *file
	tag string
}

// Bounds of uploads.
const (
	maxUploads = 256
	staleAfter = 24 * time.Hour
)

var errUploads = gofakes3.ErrorMessage(gofakes3.ErrSlowDown, "too many uploads are under way")

func (b backend) CreateMultipartUpload(ctx context.Context, bucket, name string, _ map[string]string) (gofakes3.UploadID, error) {
	if _, _, err := b.session(ctx, bucket, name); err != nil {
		return "", b.fail(bucket, name, err)
	}
	h := b.h
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, u := range h.uploads {
		if time.Since(u.used) > staleAfter {
			u.close()
			delete(h.uploads, id)
			h.forget(context.WithValue(ctx, whoKey{}, u.who), u.bucket, u.name, id)
		}
	}
	if len(h.uploads) >= maxUploads {
		return "", errUploads
	}
	id := gofakes3.UploadID(rand.Text())
	h.uploads[id] = &upload{bucket: bucket, name: name, who: who(ctx), used: time.Now(), parts: map[int]*uploadPart{}}
	return id, nil
}

// find returns an upload. h.mu is held.
func (h *Handler) find(bucket, name string, id gofakes3.UploadID) (*upload, error) {
	u := h.uploads[id]
	if u == nil || u.bucket != bucket || u.name != name {
		return nil, gofakes3.ErrNoSuchUpload
	}
	u.used = time.Now()
	return u, nil
}

func (b backend) UploadPart(ctx context.Context, bucket, name string, id gofakes3.UploadID, number int, size int64, body io.Reader) (string, error) {
	sum := md5.New()
	f, err := b.h.spool.fill(io.TeeReader(sent{body}, sum), size, b.h.o.BodyBytes)
	if err != nil {
		return "", b.fail(bucket, name, err)
	}
	part := &uploadPart{f: f, tag: `"` + hex.EncodeToString(sum.Sum(nil)) + `"`}
	b.h.mu.Lock()
	defer b.h.mu.Unlock()
	u, err := b.h.find(bucket, name, id)
	if err != nil {
		f.close()
		return "", err
	}
	if old := u.parts[number]; old != nil {
		old.f.close()
	}
	u.parts[number] = part
	return part.tag, nil
}

func (b backend) CompleteMultipartUpload(ctx context.Context, bucket, name string, id gofakes3.UploadID, in *gofakes3.CompleteMultipartUploadRequest) (gofakes3.VersionID, string, error) {
	s, key, err := b.session(ctx, bucket, name)
	if err != nil {
		return "", "", b.fail(bucket, name, err)
	}
	b.h.mu.Lock()
	u, err := b.h.find(bucket, name, id)
	var parts chain
	defer parts.Close()
	size, last := int64(0), 0
	for _, p := range in.Parts {
		if err != nil {
			break
		}
		have := u.parts[p.PartNumber]
		switch {
		case p.PartNumber <= last:
			err = gofakes3.ErrInvalidPartOrder
		case have == nil || strings.Trim(p.ETag, `"`) != strings.Trim(have.tag, `"`):
			err = gofakes3.ErrInvalidPart
		default:
			last = p.PartNumber
			size += have.f.size
			parts.files = append(parts.files, have.f)
		}
	}
	b.h.mu.Unlock()
	if err == nil && len(parts.files) == 0 {
		err = gofakes3.ErrInvalidPart
	}
	if err != nil {
		return "", "", err
	}
	f, err := b.h.spool.fill(&parts, size, b.h.o.BodyBytes)
	if err != nil {
		return "", "", b.fail(bucket, name, err)
	}
	defer f.close()
	content, err := b.set(ctx, s, bucket, name, key, f)
	if err != nil {
		return "", "", b.fail(bucket, name, err)
	}
	return "", quoted(content), b.AbortMultipartUpload(ctx, bucket, name, id)
}

func (b backend) AbortMultipartUpload(_ context.Context, bucket, name string, id gofakes3.UploadID) error {
	b.h.mu.Lock()
	defer b.h.mu.Unlock()
	if u, err := b.h.find(bucket, name, id); err == nil {
		u.close()
		delete(b.h.uploads, id)
	}
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
