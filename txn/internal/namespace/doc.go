// Package namespace maps keys to values in one version of a database: it turns a
// root and a change into a new root.
//
//	plain keys        "t/.zattrs"   "t/c/0/1"   "t/c/7/3"   "notes"
//	                      │             └────┬─────┘           │
//	root ── directory ────┼─────── "t/" ──▶ directory          │
//	           │          ▼                  │  .zattrs         │
//	           │       document              │  /c<c/ 2> ──▶ chunk map: (0,1) (7,3)
//	           ▼                             │  /i, /n…     identity, forms
//	         "notes"  ◀──────────────────────┼──────────────────┘
//
// The words:
//
//   - A directory is a tree of one path component: documents, sub-directories and
//     reserved entries (dir.go).
//   - A form is how an array writes chunk coordinates as keys (form.go). Node
//     documents declare forms; [Policy] reads them.
//   - A chunk map is a tree from coordinates to values, one for each form of a
//     directory (chunkmap.go).
//   - The home of a key is the chunk map or directory that holds it: the deepest
//     directory with a form that matches the key, else the directory of the key.
//   - The identity of an array is a random number in its directory. It stays in a
//     move, so that merges and histories follow renames.
//
// Where to find what:
//
//	read      space.go (Get), find.go, scan.go, list.go + listmap.go (byte order)
//	write     apply.go, home.go (keys that change their home), builder.go (bulk)
//	nodes     move.go (move, copy, delete), adopt.go, cut.go
//	compare   diff.go, renames.go
//	merge     merge.go → decide.go → follow.go → align.go → mergedir.go, guard.go → copies.go;
//	          conflict.go; points.go (few edits without a merge)
//	check     entry.go (pages one by one)
package namespace
