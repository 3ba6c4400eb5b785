// Package kvtest tests views: one suite that every [kv.Reader] passes, and
// wrappers that count the operations on a view or make one of them fail.
//
//	     Run(t, open, Options)
//	       │ fills a view with known content …
//	       ▼
//	the view under test  ◀── the same operations ──▶  a plain Go map
//
// A new view needs a test file of ten lines. The suite skips the interfaces that
// the view does not implement (Lister, Writer); those that it implements must
// follow the contracts of package kv.
//
// Random histories print their seed; ZARRDB_SEED repeats one.
package kvtest
