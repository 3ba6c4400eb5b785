// Package msgpack reads and writes MessagePack, head by head.
//
//	┌ head ───────────────────────┐
//	│ code │ number, where needed │ bytes of a text …, or members of a list …
//	└─────────────────────────────┘
//
// [Reader.Head] returns the kind of the next item and its length or value; the
// caller reads the bytes behind a head.
package msgpack
