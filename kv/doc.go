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
// Keys are UTF-8 strings without a leading slash, ordered by their bytes;
// values are byte strings. The operations are those of the abstract store
// interface of the Zarr v3 core specification: get and get_partial_values are
// [Reader.Get], set is [Writer.Set], set_partial_values is [SetRange], erase
// and erase_values are [Writer.Delete], erase_prefix is [DeletePrefix], list
// and list_prefix are [Lister.List], list_dir is [ListDir].
package kv
