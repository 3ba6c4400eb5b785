// Package tree is a persistent ordered map from keys to values, the one index
// structure under every version of a database.
//
//	            root page                 height 2
//	       ┌────────┴────────┐
//	  interior page     interior page     height 1: last key ▸ name, size,
//	  ┌────┼────┐          ┌──┴──┐                  entries, bytes, flags
//	leaf  leaf  leaf     leaf   leaf      height 0: key ▸ value, by columns
//
// A map is a [Root]: the name of its root page and a summary of the pages
// below. Pages are immutable and named by the hash of their bytes, so a change
// makes new pages along one path and shares all others with the old map.
//
// Where one page ends and the next begins depends on the keys and the kinds of
// values alone, never on the order in which they came. So the same content has
// the same root however it was made: [Tree.Apply] gives the root that
// [Tree.Build] would give for the result. Equal pages have equal names, which
// lets [Tree.Diff] and [Tree.Merge] skip the pages that two maps share: their
// cost grows with the changes, not with the maps.
//
// The package knows neither files nor Zarr: a page store of two methods
// ([Pages]) is passed in. The layout of a page is written down in page.go, the
// rule for cuts in cut.go, and why both are as they are in
// docs/design/pages.md.
package tree
