// Package virtual reads values that are parts of files elsewhere.
//
//	tree.Source ─▶ rules: may it be followed, and where to ─▶ kv.Value of the file
//	            ─▶ is it the version that was imported     ─▶ a part of it
//
//	one value    Resolver.Locate ─▶ a value that stays of one version of its file
//	many values  Resolver.Gather ─▶ few ranged requests, many at a time
//
// It knows no databases, sources or URL pipelines: what opens a file is a [Storage],
// and what may be followed a function that gives rules. Nothing that a database
// holds allows anything (docs/design/virtual.md).
package virtual
