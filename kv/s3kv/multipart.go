package s3kv

import (
	"context"
	"crypto/md5" // what servers make entity tags of
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv/remote"
)

// Long values are uploaded in parts, several at a time: one request holds at
// most 5 GiB, and after a failure it is sent again from its beginning.
//
//	POST key?uploads                      ─▶ the name of the upload
//	PUT  key?partNumber=1&uploadId=…  ┐
//	PUT  key?partNumber=2&uploadId=…  ├──▶ an entity tag each
//	PUT  …                            ┘
//	POST key?uploadId=…  with the tags    ─▶ now key has the value
//
// The value is not visible before the last request. If a request fails for good,
// the upload is aborted, so that its parts are not stored and billed.
const (
	// partsFrom is the length from which on a value is uploaded in parts.
	partsFrom = 128 << 20
	// partBytes is the length of a part, unless that gives more than maxParts.
	// S3 refuses parts under 5 MiB, except the last.
	partBytes = 32 << 20
	// maxParts is the largest number of parts that S3 allows.
	maxParts = 10_000
)

// partSize returns the length of the parts of a value.
func partSize(size, usual int64) int64 {
	return max(usual, (size+maxParts-1)/maxParts)
}

// upload is an upload of a value in parts.
type upload struct {
	b     *bucket
	key   string
	id    string
	value []byte
	part  int64
	tags  []string // entity tags of the parts
}

// setInParts uploads a value.
func (b *bucket) setInParts(ctx context.Context, key string, value []byte) error {
	size := partSize(int64(len(value)), b.part)
	u := &upload{b: b, key: key, value: value, part: size, tags: make([]string, (int64(len(value))+size-1)/size)}
	if err := u.begin(ctx); err != nil {
		return err
	}
	err := b.c.Each(ctx, len(u.tags), u.send)
	if err == nil {
		err = u.complete(ctx)
	}
	if err != nil {
		return errors.Join(err, u.abort(context.WithoutCancel(ctx)))
	}
	return nil
}

// maxUploadAnswer bounds the answers about an upload.
const maxUploadAnswer = 1 << 20

// ask sends a request about the upload, whose answer is XML where into is not nil.
func (u *upload) ask(ctx context.Context, method string, query url.Values, body []byte, into any) error {
	return u.b.c.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := u.b.request(ctx, method, u.key, query, body)
		if err == nil && query.Has("uploads") {
			req.Header.Set("Content-Type", "application/octet-stream") // of the value
		}
		return req, err
	}, func(resp *http.Response) error {
		switch {
		case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent:
			return u.b.c.Failed(resp, u.b.Code(resp))
		case into == nil:
			return nil
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxUploadAnswer))
		if err != nil {
			return err
		}
		if err := xml.Unmarshal(text, into); err != nil {
			return fmt.Errorf("%w: about an upload in parts: malformed", remote.ErrAnswer)
		}
		return nil
	})
}

func (u *upload) begin(ctx context.Context) error {
	var answer struct {
		UploadID string `xml:"UploadId"`
	}
	if err := u.ask(ctx, http.MethodPost, url.Values{"uploads": {""}}, []byte{}, &answer); err != nil {
		return err
	}
	if answer.UploadID == "" || len(answer.UploadID) > 4<<10 {
		return fmt.Errorf("%w: an upload in parts without a name", remote.ErrAnswer)
	}
	u.id = answer.UploadID
	return nil
}

// send uploads one part.
func (u *upload) send(ctx context.Context, i int) error {
	off := int64(i) * u.part
	part := u.value[off:min(off+u.part, int64(len(u.value)))]
	query := url.Values{"partNumber": {strconv.Itoa(i + 1)}, "uploadId": {u.id}}
	return u.b.c.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return u.b.request(ctx, http.MethodPut, u.key, query, part)
	}, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return u.b.c.Failed(resp, u.b.Code(resp))
		}
		if u.tags[i] = resp.Header.Get("ETag"); u.tags[i] == "" || len(u.tags[i]) > 1<<10 {
			return fmt.Errorf("%w: part %d has no entity tag", remote.ErrAnswer, i+1)
		}
		return nil
	})
}

// complete sets the key to the value of the parts.
func (u *upload) complete(ctx context.Context) error {
	type part struct {
		PartNumber int
		ETag       string
	}
	list := struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Part    []part
	}{}
	for i, tag := range u.tags {
		list.Part = append(list.Part, part{i + 1, tag})
	}
	body, err := xml.Marshal(list)
	if err != nil {
		return err
	}
	// S3 answers 200 before it has finished, and may report an error in the
	// body.
	var answer struct {
		XMLName xml.Name
		Code    string
	}
	err = u.ask(ctx, http.MethodPost, url.Values{"uploadId": {u.id}}, body, &answer)
	var failed *remote.Error
	switch {
	case errors.As(err, &failed) && failed.Code == "NoSuchUpload" && u.there(ctx):
		return nil // the answer to an earlier try was lost
	case err != nil:
		return err
	case answer.XMLName.Local != "CompleteMultipartUploadResult":
		return fmt.Errorf("%w: an upload in parts did not end: %.100s", remote.ErrAnswer, answer.Code)
	}
	return nil
}

// there reports whether the entity tag of the key is that of the value. It is
// computed from those of the parts, unless the server encrypts them.
func (u *upload) there(ctx context.Context) bool {
	sum := md5.New()
	for _, tag := range u.tags {
		b, err := hex.DecodeString(strings.Trim(tag, `"`))
		if err != nil {
			return false
		}
		sum.Write(b)
	}
	info, err := remote.NewObjects(u.b.c, u.b).Stat(ctx, u.key)
	want := fmt.Sprintf(`etag:"%x-%d"`, sum.Sum(nil), len(u.tags))
	return err == nil && info.Size == int64(len(u.value)) && string(info.Version) == want
}

// abort deletes the parts on the server.
func (u *upload) abort(ctx context.Context) error {
	err := u.ask(ctx, http.MethodDelete, url.Values{"uploadId": {u.id}}, nil, nil)
	var failed *remote.Error
	if errors.As(err, &failed) && failed.Code == "NoSuchUpload" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("parts of %q are left on the server: %w", u.key, err)
	}
	return nil
}
