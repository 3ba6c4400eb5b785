// Package zurl is the syntax of URL pipelines (ZEP 8): where an array lies, as
// a root URL and adapters that lead further in. It is string work and opens
// nothing.
//
//	gs://bucket/a/outer.zip | zip:b/inner.zip | zip:c/ | zarr3:d
//	└──────── root ───────┘   └──────────── adapters ────────┘
//	a file in a bucket        a file in it      …        a Zarr node
//
// A [URL] is always normal: schemes in lower case, adapters with their colon,
// paths without "." and "..", "..:" adapters carried out, escapes only where
// they are needed, and a slash behind a path that the next adapter needs to be
// a directory. Two URLs are equal exactly if they print alike, and parsing the
// print of a URL gives it back. So a check whether a URL lies below an allowed
// URL is safe on the output of [URL.String].
//
// # Paths
//
// An escaped dot or slash is no way around anything: escapes are decoded before
// ".." is looked for, and printing escapes again. Only http and https keep
// escapes of reserved characters, which belong to the server, and may have a
// query. Elsewhere "?" and "#" must be escaped. Spaces and characters beyond
// ASCII need no escape, control characters and NUL do.
//
// ".." above the root of a store is an error, except for http and https (RFC
// 3986, 5.2.4) and in paths as the file system writes them.
//
// An adapter's path begins at its root, with or without a leading slash. The
// path of json is a JSON pointer, in which dots mean nothing; a relative URL
// resolves them all the same.
//
// # Where the proposal leaves things open
//
//   - A root without a scheme is a path of the file system, taken literally up
//     to the first "|". A root that begins with a drive, "c:/" or `c:\`, is a path too.
//     A relative path, and file:a/b, are relative to the working directory.
//   - The slash for an adapter that needs a directory is there when a later
//     "..:" goes by that path: "db|ocdbt:|..:x" is "db/x".
//   - A relative URL applies to the path of the last sub-URL, as the grammar
//     says. The first example in the proposal's section on relative URLs goes by
//     the sub-URL before, which contradicts the grammar.
//   - file: has no host but localhost. Unknown schemes are passed on: the opener
//     decides whether they can be opened.
package zurl
