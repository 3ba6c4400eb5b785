package redact

import "strings"

// aliases are other names of schemes. fsspec, Hadoop and PyArrow use them for the same
// files and buckets.
var aliases = map[string]string{"local": "file", "gcs": "gs", "s3a": "s3", "s3n": "s3"}

// Scheme returns the name of a URL's scheme that stands for all its spellings: in lower
// case, "s3" for s3a and s3n, "gs" for gcs, "file" for local.
func Scheme(name string) string {
	name = strings.ToLower(name)
	if known, ok := aliases[name]; ok {
		return known
	}
	return name
}
