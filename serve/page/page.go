// Package page is the web page that shows databases and other stores: their arrays as
// pictures, their history, and what changed.
//
//	browser ──GET /-/ui/──▶ files of this package   HTML, CSS and JavaScript modules
//	        ──GET /-/api/─▶ package serve/web       reports and decoded windows
//
// The modules are sent as one, main.js, so that the first picture waits for few requests; see
// [join]. Nothing else changes what is written. The page only reads.
// Its policy allows only scripts and requests of the same server.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
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
	modules := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		switch {
		case err != nil:
		case path.Ext(name) == ".js" && exported.Match(body) || name == "main.js":
			modules[name] = string(body)
		default:
			all[name], err = load(name, body)
		}
		return err
	})
	if err == nil {
		all["main.js"], err = load("main.js", join(modules, "main.js"))
	}
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

// The forms of import and export that modules of the page have; a test looks for others.
var (
	imported = regexp.MustCompile(`(?m)^import (\{[^}]*\}|\* as \w+) from '\./([\w/.-]+\.js)';$`)
	exported = regexp.MustCompile(`(?m)^export (async function|function|class|const) (\w+)|export ?\{([^}]*)\};`)
)

// join makes one module of a module and those that it imports, which may not import each other in a
// circle. Each module is a function that returns its exports.
func join(modules map[string]string, name string) []byte {
	var out strings.Builder
	done := map[string]string{} // the variable of a module
	var add func(name string) string
	add = func(name string) string {
		if v := done[name]; v != "" {
			return v
		}
		v := fmt.Sprintf("module%d", len(done))
		done[name] = v
		body := imported.ReplaceAllStringFunc(modules[name], func(line string) string {
			m := imported.FindStringSubmatch(line)
			return "const " + strings.TrimPrefix(strings.ReplaceAll(m[1], " as ", ": "), "*: ") + " = " + add(m[2]) + ";"
		})
		var names []string
		body = exported.ReplaceAllStringFunc(body, func(text string) string {
			m := exported.FindStringSubmatch(text)
			if m[3] == "" {
				names = append(names, m[2])
				return m[1] + " " + m[2]
			}
			for _, pair := range strings.Split(m[3], ",") {
				own, other, _ := strings.Cut(pair, " as ")
				names = append(names, other+": "+own)
			}
			return ""
		})
		fmt.Fprintf(&out, "// %s\nconst %s = (() => {\n%s\nreturn { %s };\n})();\n", name, v, strings.TrimSpace(body), strings.Join(names, ", "))
		return v
	}
	add(name)
	return []byte(out.String())
}

func load(name string, body []byte) (file, error) {
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
