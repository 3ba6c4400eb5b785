// Package zarr reads and writes arrays and groups in the formats Zarr v1, v2 and v3, and reads
// arrays and groups in the early v3 draft, over any view of keys and bytes.
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
// # Memory
//
// Reading writes every element of its result, several goroutines at a time. Memory that the program
// did not have before costs the system more than many codecs: a fault for each page. Use the same
// memory for many reads with [ReadInto] or [Array.ReadBytes] where you can. Else prefer [Read] to
// make and ReadInto: the memory of Read is not cleared first. On Linux, Read, and ReadInto and
// ReadBytes from 4 MiB on, ask for huge pages for the part of the memory that holds whole ones.
// That advice stays with the address range: the system may later keep up to 2 MiB resident for a
// few bytes there. Programs that mind set it back with MADV_NOHUGEPAGE, or read pieces below 4 MiB.
//
//	nodes       Open, OpenArray, OpenGroup, OpenEach, Walk, Create, CreateGroup, Consolidate
//	elements    Read, ReadInto, Write, Fill; Array.ReadBytes, Array.Parts, …
//	selections  Sel, Orthogonal, Points of Slice, At, List, …; ParseSelection,
//	            by labels such as time='2020-02': ParseSelection of package cf
package zarr
