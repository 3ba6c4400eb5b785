package refs

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteOptions say how a JSON set is written. nil and the zero value work.
type WriteOptions struct {
	// Version of the format, 0 or 1. Version 1 has templates for URLs and common
	// prefixes of URLs, if they make the text shorter. Default 0.
	Version int

	// NoTemplates leaves templates out of version 1.
	NoTemplates bool
}

// WriteJSON writes a JSON reference set, one entry to a line. The same entries
// in the same order give the same bytes. Entries are written in the order of the
// sequence; where a key occurs more than once, readers use the last.
//
// For version 1 with templates the sequence runs twice and must yield the same
// entries; everything else is streaming. Templates are plain texts, which fsspec
// renders with and without Jinja2. VirtualiZarr does not support templates. A
// URL that contains "{{" is an expression beside templates, which fsspec evaluates
// only with simple_templates=False.
func WriteJSON(w io.Writer, entries iter.Seq2[Entry, error], o *WriteOptions) error {
	var opts WriteOptions
	if o != nil {
		opts = *o
	}
	out := &jsonWriter{w: bufio.NewWriterSize(w, 1<<18)}
	switch {
	case opts.Version == 1 && !opts.NoTemplates:
		var stats urlStats
		for e, err := range entries {
			if err != nil {
				return err
			}
			if e.URL != "" {
				stats.add(e.URL)
			}
		}
		out.templates = stats.choose()
		fallthrough
	case opts.Version == 1:
		out.v1 = true
	case opts.Version != 0:
		return fmt.Errorf("refs: version %d of reference sets is not known", opts.Version)
	}
	out.begin()
	for e, err := range entries {
		if err == nil {
			err = out.entry(&e)
		}
		if err != nil {
			return err
		}
	}
	return out.end()
}

type jsonWriter struct {
	w         *bufio.Writer
	v1        bool
	templates *templates
	some      bool // an entry was written
	buf       []byte
}

func (w *jsonWriter) begin() {
	if !w.v1 {
		_, _ = w.w.WriteString("{") // bufio keeps the error until it is flushed
		return
	}
	b := []byte(`{"version":1,`)
	if w.templates != nil && len(w.templates.list) > 0 {
		b = append(b, "\"templates\":{"...)
		for i, t := range w.templates.list {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, '\n')
			b = appendJSONString(b, t.name)
			b = append(b, ':')
			b = appendJSONString(b, t.text)
		}
		b = append(b, "\n},"...)
	}
	_, _ = w.w.Write(append(b, `"refs":{`...))
}

func (w *jsonWriter) end() error {
	tail := "}\n"
	if w.some {
		tail = "\n}\n"
	}
	if w.v1 {
		tail = tail[:len(tail)-1] + "}\n"
	}
	_, _ = w.w.WriteString(tail)
	return w.w.Flush()
}

func (w *jsonWriter) entry(e *Entry) error {
	if err := checkKey(e.Key); err != nil {
		return keyError(e.Key, err)
	}
	if !w.v1 && e.Key == "version" {
		return keyError(e.Key, invalid("version 0 cannot have this key"))
	}
	b := append(w.buf[:0], ',', '\n')
	if !w.some {
		b = b[1:]
		w.some = true
	}
	b = appendJSONString(b, e.Key)
	b = append(b, ':')
	if e.Inline() {
		b = appendData(b, e.Data, e.Form)
	} else {
		if err := e.check(); err != nil {
			return keyError(e.Key, err)
		}
		b = w.url(append(b, '['), e.URL)
		if !e.Whole() {
			b = strconv.AppendInt(append(b, ','), e.Offset, 10)
			b = strconv.AppendInt(append(b, ','), e.Length, 10)
		}
		b = append(b, ']')
	}
	w.buf = b
	_, err := w.w.Write(b)
	return err
}

func (w *jsonWriter) url(b []byte, url string) []byte {
	if !w.v1 {
		return appendJSONString(b, url)
	}
	if w.templates != nil {
		if name, rest := w.templates.find(url); name != "" {
			b = append(append(append(b, `"{{`...), name...), `}}`...)
			b = appendJSONText(b, rest)
			return append(b, '"')
		}
	}
	if w.templates != nil && len(w.templates.list) > 0 && strings.Contains(url, "{{") {
		// Beside templates a URL is a template: this one prints a string.
		url = "{{'" + literal.Replace(url) + "'}}"
	}
	return appendJSONString(b, url)
}

// literal escapes a string for a template.
var literal = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`)

// appendData appends bytes as a string: text if it reads back, else base64.
func appendData(b, data []byte, form Form) []byte {
	text := form != FormBase64 && utf8.Valid(data) && !strings.HasPrefix(string(data[:min(len(data), len(base64Prefix))]), base64Prefix)
	if text && form == FormAuto {
		text = !slices.ContainsFunc(data, func(x byte) bool { return x < 0x20 && x != '\n' && x != '\r' && x != '\t' || x == 0x7f })
	}
	b = append(b, '"')
	if text {
		b = appendJSONText(b, data)
	} else {
		b = append(b, base64Prefix...)
		b = base64.StdEncoding.AppendEncode(b, data)
	}
	return append(b, '"')
}

func appendJSONString(b []byte, s string) []byte {
	return append(appendJSONText(append(b, '"'), s), '"')
}

// appendJSONText appends UTF-8 as it stands in a JSON string.
func appendJSONText[T string | []byte](b []byte, s T) []byte {
	from := 0
	for i := 0; i < len(s); i++ {
		x := s[i]
		if x >= 0x20 && x != '"' && x != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch x {
		case '"', '\\':
			b = append(b, '\\', x)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		case '\r':
			b = append(b, `\r`...)
		default:
			b = appendEscape(b, rune(x))
		}
	}
	return append(b, s[from:]...)
}

// templates are chosen URLs and folders.
type templates struct {
	list []template
	full map[string]string // text -> name
	last string            // the last URL found, with its name and rest
	name string
	rest string
}

type template struct{ name, text string }

// find returns the template that a URL begins with and the rest of the URL.
func (t *templates) find(url string) (name, rest string) {
	if url == t.last {
		return t.name, t.rest
	}
	t.last, t.name, t.rest = url, "", ""
	if plainURL(url) {
		if name, ok := t.full[url]; ok {
			t.name = name
		} else if i := strings.LastIndexByte(url, '/') + 1; i > 0 {
			if name, ok := t.full[url[:i]]; ok {
				t.name, t.rest = name, url[i:]
			}
		}
	}
	return t.name, t.rest
}

// plainURL reports whether a URL may be written with a template. One with braces
// may not: some readers render templates with str.format.
func plainURL(url string) bool { return !strings.ContainsAny(url, "{}\r\n") }

// urlStats counts URLs, and folders where there are too many different URLs
// to count each.
type urlStats struct {
	urls    map[string]int64
	folders map[string]int64
	last    string
	run     int64
}

// Bounds of the counters, so that memory does not grow with the set.
const (
	maxCountedURLs    = 1 << 15
	maxCountedFolders = 1 << 15
)

func (s *urlStats) add(url string) {
	if url == s.last {
		s.run++
		return
	}
	s.flush()
	s.last, s.run = url, 1
}

func (s *urlStats) flush() {
	url, n := s.last, s.run
	s.run = 0
	if n == 0 || !plainURL(url) {
		return
	}
	if s.urls == nil {
		s.urls, s.folders = map[string]int64{}, map[string]int64{}
	}
	if _, ok := s.urls[url]; ok || len(s.urls) < maxCountedURLs {
		s.urls[strings.Clone(url)] += n
		return
	}
	s.folder(url, n)
}

func (s *urlStats) folder(url string, n int64) {
	i := strings.LastIndexByte(url, '/') + 1
	if _, ok := s.folders[url[:i]]; ok || i > 0 && len(s.folders) < maxCountedFolders {
		s.folders[strings.Clone(url[:i])] += n
	}
}

// choose picks the templates: first URLs that occur often, then folders of the
// other URLs.
func (s *urlStats) choose() *templates {
	s.flush()
	t := &templates{full: map[string]string{}}
	picked := pick(s.urls, 0)
	for _, text := range picked {
		t.full[text] = ""
	}
	for _, url := range slices.Sorted(maps.Keys(s.urls)) {
		if _, ok := t.full[url]; !ok {
			s.folder(url, s.urls[url])
		}
	}
	picked = append(picked, pick(s.folders, len(picked))...)
	for i, text := range picked {
		name := templateName(i)
		t.full[text] = name
		t.list = append(t.list, template{name, text})
	}
	return t
}

// pick returns texts that save bytes as templates, the best first; taken is the
// names in use.
func pick(counts map[string]int64, taken int) []string {
	type candidate struct {
		text string
		gain int64
	}
	var list []candidate
	for text, n := range counts {
		list = append(list, candidate{text, n * int64(len(text)-len("{{a}}"))})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		if a.gain != b.gain {
			return int(min(max(b.gain-a.gain, -1), 1))
		}
		return strings.Compare(a.text, b.text)
	})
	var out []string
	for _, c := range list {
		name := len(templateName(taken + len(out)))
		n := counts[c.text]
		// Each use saves the text and costs the name in braces; the template
		// itself is a line.
		if n*int64(len(c.text)-name-4) <= int64(len(c.text)+name+len("\n\"\":\"\",")) {
			continue
		}
		out = append(out, c.text)
	}
	return out
}

// templateName makes short names: a to z, A to Z, then a0, a1 and so on, which
// are no words of the template language.
func templateName(i int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if i < len(letters) {
		return letters[i : i+1]
	}
	return letters[i%len(letters):][:1] + strconv.Itoa(i/len(letters)-1)
}
