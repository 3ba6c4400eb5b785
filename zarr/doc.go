// Package zarr reads and writes arrays and groups in the formats Zarr v1, v2
// and v3, and reads those in the early v3 draft, over any view of keys and bytes.
//
//	     documents ──── package meta ───▶ Meta: shape, chunks, type, codecs
//	         │                              │
//	view ─▶ Open ─▶ Array ── Selection ─▶ chunks ─▶ codecs ─▶ elements
//	         └────▶ Group ── Children, Walk
//
// A node is an array or a group. An array is cut into chunks by its [Grid]; the
// coordinates of a chunk are spelled as its key, its elements encoded by the
// chain of codecs as the value of that key. A missing chunk holds the fill
// value.
//
//	nodes       Open, OpenArray, OpenGroup, OpenEach, Walk, Create, CreateGroup, Consolidate
//	elements    Read, ReadInto, Write, Fill, Append; Array.ReadBytes, Array.ReadTo, …
//	selections  Sel, Orthogonal, Points of Slice, At, List, …; ParseSelection,
//	            by labels such as time='2020-02': ParseSelection of package cf
package zarr
