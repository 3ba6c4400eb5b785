// Package httpkv reads what lies below an address of a web server as a view.
//
//	https://host/data/store/?token=…
//	                │            │
//	key "c/0/0"     ▼            ▼
//	https://host/data/store/c/0/0?token=…     one GET with a range
//
// Any server that answers GET will do. One that knows ranges, HEAD, and says
// versions by ETag or Last-Modified is read in parts and noticed when it
// changes; see package remote for what is done about those that do not, or that
// answer nonsense.
//
// The view cannot be listed: the protocol has no such request. Consolidated
// metadata says what a hierarchy holds.
//
// Keys are the path below the address, escaped. Keys with "." or ".." as a name
// are refused, because servers resolve them.
package httpkv
