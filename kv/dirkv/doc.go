// Package dirkv is the file system store (Zarr "File system store", version
// 1.0): a directory is a view, a file is a key.
//
//	base directory  /data/x.zarr             c:\data\x.zarr
//	key             temp/c/0/1               temp/c/0/1
//	file            /data/x.zarr/temp/c/0/1  c:\data\x.zarr\temp\c\0\1
//
// Other programs may write to the directory at any time, so nothing is cached
// and nothing is mapped: reading a mapping of a truncated file kills the
// process, a read call does not. Values are read with pread into pooled buffers,
// which costs about a tenth against mapped pages.
//
// A value appears whole or not at all: it is written to a temporary file in the
// directory where it belongs, synced, and renamed; then the directory is synced.
// A crash may leave a temporary file, whose name no key can have; listings skip
// it and [Store.Clean] removes it.
//
// Files outside the base directory are never written, and read only if
// [Options.Follow] allows. Symbolic links that stay inside are followed; others,
// and absolute ones, are errors.
//
// What a directory cannot do:
//
//   - Hold a key below another key ("a" and "a/b"): Set refuses the second.
//   - Hold the names "", "." and "..": keys with them are kv.ErrInvalidKey, and
//     so are names longer than the file system takes and, on Windows, names
//     that mean something else there.
//   - Tell "A" from "a" where the file system does not.
//   - Show files whose names are not UTF-8: listings leave them out.
//
// Empty directories are no keys, but ListDir shows them as prefixes, as the
// store's specification has it. Delete removes the directories that it empties.
package dirkv
