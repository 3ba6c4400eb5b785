// Package page is the web page that shows databases and other stores: their arrays as
// pictures, their history, and what changed.
//
//	browser ──GET /-/ui/──▶ files of this package   HTML, CSS and JavaScript modules
//	        ──GET /-/api/─▶ package serve/web       reports and decoded windows
//
// The files are embedded as they are written; nothing compiles them. The page only reads.
// Its policy allows only scripts and requests of the same server.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed index.html *.css *.js lib/*.js lib/*.css lib/LICENSES.txt
var files embed.FS

// policy forbids everything that the page does not need. Pictures are drawn from memory.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is an embedded file as it is sent.
type file struct {
	contentType, tag string
	body, gzipped    []byte
}

// loaded are the embedded files by name.
var loaded = sync.OnceValue(func() map[string]file {
	all := map[string]file{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[name], err = load(name)
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	all[""] = all["index.html"]
	return all
})

// Handler serves the page below a prefix of paths, such as "/-/ui/". Compressed files are
// kept in memory, less than 200 KiB in all. Safe for concurrent use.
func Handler(prefix string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := loaded()[strings.TrimPrefix(r.URL.Path, prefix)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		f.send(w, r)
	})
}

func load(name string) (file, error) {
	body, err := files.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(body)
	}
	if err == nil {
		err = z.Close()
	}
	sum := sha256.Sum256(body)
	f := file{tag: hex.EncodeToString(sum[:16]), body: body, gzipped: b.Bytes()}
	switch path.Ext(name) {
	case ".js": // the system's tables of types may say something else
		f.contentType = "text/javascript; charset=utf-8"
	case ".txt":
		f.contentType = "text/plain; charset=utf-8"
	default:
		f.contentType = mime.TypeByExtension(path.Ext(name))
	}
	return f, err
}

func (f file) send(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer") // the path may have a secret
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-cache")
	head.Set("Vary", "Accept-Encoding")
	body, tag := f.body, `"`+f.tag+`"`
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		head.Set("Content-Encoding", "gzip")
		body, tag = f.gzipped, `"`+f.tag+`-gzip"`
	}
	head.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		head.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", f.contentType)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client has gone
	}
}
