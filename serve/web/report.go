package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

// gzipFrom is the size from which reports are compressed.
const gzipFrom = 1 << 10

// writeReport answers with what the server made: compressed if the client takes
// that, with an ETag of its bytes. Values never come here, because they are encoded
// already, and ranges of them are asked for.
func writeReport(w http.ResponseWriter, r *http.Request, contentType string, body []byte) error {
	head := w.Header()
	head.Set("Content-Type", contentType)
	head.Add("Vary", "Accept-Encoding")
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:20]) + `"`
	if len(body) >= gzipFrom && acceptsGzip(r) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(body)
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return err
		}
		body = b.Bytes()
		tag = strings.TrimSuffix(tag, `"`) + `-gzip"`
		head.Set("Content-Encoding", "gzip")
	}
	head.Set("ETag", tag)
	if head.Get("Cache-Control") == "" {
		head.Set("Cache-Control", "no-cache")
	}
	if matches(r.Header.Get("If-None-Match"), tag) {
		head.Del("Content-Type")
		head.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client has gone
	}
	return nil
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimRight(strings.TrimSpace(q), ".0") != "q=" {
			return true
		}
	}
	return false
}

// matches reports whether a list of ETags has one, or is a star.
func matches(list, tag string) bool {
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimPrefix(strings.TrimSpace(part), "W/")
		if part == "*" || part == tag {
			return true
		}
	}
	return false
}
