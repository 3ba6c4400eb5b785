// Package kvtest tests views: one suite that every [kv.Reader] passes, and
// wrappers that count the operations on a view or make one of them fail.
//
//	     Run(t, open, Options)
//	       │ fills a view with known content …
//	       ▼
//	the view under test  ◀── the same operations ──▶  a plain Go map
//
// A new view needs a test file of ten lines. What the view cannot do (it has
// no Lister, no Writer) is not tested; what it can do, it must do exactly as
// package kv says.
//
// Random histories print their seed; KVTEST_SEED repeats one.
package kvtest
