// Package virtual reads values that are parts of files elsewhere.
//
//	tree.Source ─▶ rules: may it be followed, and where to ─▶ kv.Value of the file
//	            ─▶ is it the version that was imported     ─▶ a part of it
//
//	one value    Resolver.Locate ─▶ a value that keeps to one version of its file
//	many values  Resolver.Gather ─▶ few ranged requests, many at a time
//
// It knows no databases, sources or URL pipelines: a [Storage] opens files, and a
// function returns the rules of what may be followed. The contents of a database
// allow nothing (docs/design/virtual.md).
package virtual
