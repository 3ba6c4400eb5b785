package zurl

import (
	"strings"

	"github.com/zarrdb/zarrdb/kv/redact"
)

// Kind is the kind of resource of a URL (ZEP 8, "Resource kinds"), derived from
// the URL alone.
type Kind uint8

const (
	// kindUnknown may be a file or a directory, or anything for schemes that
	// are not known.
	kindUnknown Kind = iota
	// kindFile is a single value without a format.
	kindFile
	// kindDirectory is a set of keys without a format.
	kindDirectory
	// kindDataset has a format: an array, a group, an image, a JSON value.
	kindDataset
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	return [...]string{"unknown", "file", "directory", "dataset"}[k]
}

// syntaxOf is how the part of a URL behind the scheme is written.
type syntaxOf uint8

const (
	keyPath   syntaxOf = iota // a path of keys
	versioned                 // "@version/" and a path of keys
	noPath                    // nothing
	pointer                   // a JSON pointer
	byteRange                 // two numbers
)

// scheme describes a known scheme.
type scheme struct {
	root   bool
	syntax syntaxOf
	// needs is the required kind of the URL before an adapter; KindUnknown
	// allows all.
	needs Kind
	// kind is the resulting kind; KindUnknown with byPath is a directory if the
	// path is empty or ends in a slash.
	kind   Kind
	byPath bool
	// web keeps escapes and may have a query.
	web bool
	// host means that a root has "//" and a host or bucket; domain that it is a
	// host, whose case is ignored.
	host, domain bool
}

// schemes are the schemes of the proposal, and three of this project: zarrdb
// opens a database, kerchunk a reference set, memory a store of the process.
var schemes = map[string]scheme{
	"file":     {root: true, byPath: true},
	"http":     {root: true, host: true, domain: true, web: true},
	"https":    {root: true, host: true, domain: true, web: true},
	"s3":       {root: true, host: true, byPath: true},
	"gs":       {root: true, host: true, byPath: true},
	"s3+http":  {root: true, host: true, domain: true, byPath: true},
	"s3+https": {root: true, host: true, domain: true, byPath: true},
	"memory":   {root: true, byPath: true},

	"zip":        {needs: kindFile, byPath: true},
	"ocdbt":      {needs: kindDirectory, syntax: versioned},
	"icechunk":   {needs: kindDirectory, syntax: versioned, byPath: true},
	"zarrdb":     {needs: kindDirectory, syntax: versioned, byPath: true},
	"kerchunk":   {byPath: true}, // of a file, or of a directory of parquet files
	"zarr":       {needs: kindDirectory, kind: kindDataset},
	"zarr2":      {needs: kindDirectory, kind: kindDataset},
	"zarr3":      {needs: kindDirectory, kind: kindDataset},
	"n5":         {needs: kindDirectory, kind: kindDataset},
	"gzip":       {needs: kindFile, kind: kindFile, syntax: noPath},
	"zstd":       {needs: kindFile, kind: kindFile, syntax: noPath},
	"byte-range": {needs: kindFile, kind: kindFile, syntax: byteRange},
	"json":       {needs: kindFile, kind: kindDataset, syntax: pointer},
	"tiff":       {needs: kindFile, kind: kindDataset}, // a path names one of its arrays
	"jpeg":       {needs: kindFile, kind: kindDataset, syntax: noPath},
	"png":        {needs: kindFile, kind: kindDataset, syntax: noPath},
	"bmp":        {needs: kindFile, kind: kindDataset, syntax: noPath},
	"avif":       {needs: kindFile, kind: kindDataset, syntax: noPath},
	"webp":       {needs: kindFile, kind: kindDataset, syntax: noPath},

	// The proposal allows no path; here it is the key of a scale.
	"neuroglancer-precomputed": {needs: kindDirectory, kind: kindDataset},
}

// parent is the scheme of the adapter that takes one away.
const parent = ".."

// Scheme returns the name of a scheme that stands for all its spellings, in lower case:
// "s3" for S3A.
func Scheme(name string) string { return redact.Scheme(name) }

// cutScheme splits "scheme:rest". The scheme is returned as [Scheme] names it; ok is
// false without a scheme (RFC 3986, 3.1).
func cutScheme(s string) (name, rest string, ok bool) {
	name, rest, ok = strings.Cut(s, ":")
	if !ok || !isScheme(name) {
		return "", s, false
	}
	return Scheme(name), rest, true
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
