package icechunk

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/refs"
)

// prefixes collects the beginnings of the URLs of virtual chunks: the virtual chunk
// containers of a repository.
type prefixes struct {
	seen map[string]bool
	last string
}

// mostFolders is how many folders of this machine are named; if there are more,
// folders above them are.
const mostFolders = 16

// spelled returns a URL with the name of its scheme that Icechunk knows.
func spelled(url string) string {
	if scheme, rest, ok := strings.Cut(url, "://"); ok {
		return refs.Scheme(scheme) + "://" + rest
	}
	return url
}

// add notes a URL: its host or bucket, of a file its folder.
func (p *prefixes) add(url string) {
	if p.last != "" && strings.HasPrefix(url, p.last) {
		return
	}
	for prefix := range p.seen {
		if strings.HasPrefix(url, prefix) {
			p.last = prefix
			return
		}
	}
	scheme, rest, _ := strings.Cut(url, "://")
	prefix := ""
	if scheme == "file" {
		prefix = url[:strings.LastIndexByte(url, '/')+1]
	} else {
		host, _, _ := strings.Cut(rest, "/")
		prefix = scheme + "://" + host + "/"
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[prefix], p.last = true, prefix
	for p.folders() > mostFolders && p.shorten() {
		p.last = ""
	}
}

func (p *prefixes) folders() (n int) {
	for prefix := range p.seen {
		if strings.HasPrefix(prefix, "file://") {
			n++
		}
	}
	return n
}

// shorten puts the folder above in the place of the longest folders.
func (p *prefixes) shorten() bool {
	longest := 0
	for prefix := range p.seen {
		if strings.HasPrefix(prefix, "file://") {
			longest = max(longest, strings.Count(prefix, "/"))
		}
	}
	if longest <= 4 { // file:///a/
		return false
	}
	for prefix := range maps.Clone(p.seen) {
		if strings.HasPrefix(prefix, "file://") && strings.Count(prefix, "/") == longest {
			delete(p.seen, prefix)
			p.seen[prefix[:strings.LastIndexByte(strings.TrimSuffix(prefix, "/"), '/')+1]] = true
		}
	}
	return true
}

// config is the settings of a repository with these containers, nil without any.
func (p *prefixes) config() []byte {
	if len(p.seen) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.WriteString("inline_chunk_threshold_bytes: null\nget_partial_values_concurrency: null\ncompression: null\nmax_concurrent_requests: null\ncaching: null\nstorage: null\nvirtual_chunk_containers:\n")
	for _, prefix := range slices.Sorted(maps.Keys(p.seen)) {
		quoted := "'" + strings.ReplaceAll(prefix, "'", "''") + "'"
		scheme, rest, _ := strings.Cut(prefix, "://")
		store := ""
		switch scheme {
		case "s3":
			store = "!s3\n      region: null\n      endpoint_url: null\n      anonymous: false\n      allow_http: false\n      force_path_style: false\n      network_stream_timeout_seconds: 60\n      requester_pays: false"
		case "gs":
			store = "!gcs {}"
		case "http", "https":
			store = "!http {}"
		case "file":
			store = "!local_file_system '" + strings.ReplaceAll(rest, "'", "''") + "'"
		default:
			continue // Icechunk follows no such URL
		}
		fmt.Fprintf(&b, "  %s:\n    name: null\n    url_prefix: %s\n    store: %s\n", quoted, quoted, store)
	}
	b.WriteString("manifest: null\n")
	return b.Bytes()
}
