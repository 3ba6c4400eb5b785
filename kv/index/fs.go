package index

import "github.com/cockroachdb/pebble/v2/vfs"

// FS is the file system interface that a whole database lives on, so that
// packages which are not to know Pebble can pass one through.
type FS = vfs.FS

// DefaultFS is the operating system's.
var DefaultFS = vfs.Default

// WriteCategory is what files outside the index are created with.
const WriteCategory = vfs.WriteCategoryUnspecified
