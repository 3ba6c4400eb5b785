// Package object has the codecs of elements of variable length: text, bytes,
// arrays, and any JSON value.
//
//	vlen-utf8, vlen-bytes, vlen-array   count │ length │ bytes │ length │ bytes …
//	json, json2                         [element, element, …, "|O", [shape]]
//	msgpack, msgpack2                   the same list as MessagePack
//
// In memory elements have the layout of variable length that package dtype
// describes. The JSON and MessagePack codecs also take numbers, truth values and
// texts, as the objects that Python has for them.
//
// [Entries] is the list; package builtin registers it.
package object
