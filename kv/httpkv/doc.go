// Package httpkv reads the files below an address of a web server as a view.
//
//	https://host/data/store/?token=…
//	                │            │
//	key "c/0/0"     ▼            ▼
//	https://host/data/store/c/0/0?token=…     one GET with a range
//
// Any server that answers GET will do. If it supports ranges, HEAD, and ETag or
// Last-Modified, values are read in parts and changes are noticed. Package
// remote describes the fall-backs for other servers and for malformed answers.
//
// The view cannot be listed: the protocol has no such request. Consolidated
// metadata lists the nodes of a hierarchy. Only zarrdb serve lists its keys; see
// [View.Listed].
//
// Keys are the path below the address, escaped. Keys with "." or ".." as a name
// are refused, because servers resolve them.
package httpkv
