// Package kv is the vocabulary of everything that maps keys to bytes.
//
// A view is a value with one or more of the interfaces below: a directory, a
// zip archive, a reference set, a snapshot of a database or an open session.
// Which interfaces a view has is what it can do; nothing else says so.
//
//	        Reader        Lister         Writer
//	          │             │              │
//	 ┌────────┴──────┬──────┴───────┬──────┴──────┐
//	mem            dirkv          zipkv        txn.Session …
//	          └── views stack: Sub(zip(dir), "a/") ──┘
//
// The required interfaces are tiny. What only some views do well (a located
// value, a directory listing, an erased prefix) is an optional interface, and
// a function of the same name in this package uses it or falls back.
//
// Keys are UTF-8 strings without a leading or trailing slash ([ValidKey]),
// ordered by their bytes; values are byte strings. The operations are those of
// the abstract store interface of the Zarr v3 core specification:
//
//	get                  [Reader.Get], [Get]
//	get_partial_values   [GetMany], [GetPartial]
//	set                  [Writer.Set]
//	set_partial_values   [SetRange]
//	erase                [Writer.Delete]
//	erase_values         [DeleteAll]
//	erase_prefix         [DeletePrefix]
//	list, list_prefix    [Lister.List], [Keys]
//	list_dir             [ListDir]
//
// [Gather] is the same for many values that are handed over one by one: what lies
// close in a file on a server is one request.
//
// A wrapper has a method even when what it wraps has not: it then returns
// errors.ErrUnsupported, and the function of this package falls back.
package kv
