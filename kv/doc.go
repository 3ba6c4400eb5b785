// Package kv is the vocabulary of everything that maps keys to bytes.
//
// A view is a value with one or more of the interfaces below: a directory, a zip
// archive, a reference set, a snapshot of a database or an open session. The
// interfaces that a view implements are its capabilities; there are no other
// flags.
//
//	        Reader        Lister         Writer
//	          │             │              │
//	 ┌────────┴──────┬──────┴───────┬──────┴──────┐
//	mem            dirkv          zipkv        txn.Session …
//	          └── views stack: Sub(zip(dir), "a/") ──┘
//
// The required interfaces are tiny. Operations that only some views do well
// (locate a value, list a directory, erase a prefix) are optional interfaces. A
// function of the same name in this package uses the view's method or a
// fall-back.
//
// Keys are UTF-8 strings without a leading or trailing slash ([ValidKey]),
// ordered by their bytes; values are byte strings. The operations are those of
// the abstract store interface of the Zarr v3 core specification:
//
//	get                  [Reader.Get], [Get]
//	get_partial_values   [GetMany]
//	set                  [Writer.Set]
//	set_partial_values   [SetRange]
//	erase                [Writer.Delete]
//	erase_values         [DeleteAll]
//	erase_prefix         [DeletePrefix]
//	list, list_prefix    [Lister.List], [Keys]
//	list_dir             [ListDir]
//
// [Gather] reads many values and hands over one at a time. It reads values that
// lie close together in a file on a server with one request.
//
// [Conditional] stores replace a value only if it is the one that the caller read: directories, and
// buckets of S3 and Google. [SetValue] sets a key to a part of a file.
//
// A wrapper has each optional method. If the wrapped view lacks it, the method
// returns errors.ErrUnsupported, and the function of this package falls back.
package kv
