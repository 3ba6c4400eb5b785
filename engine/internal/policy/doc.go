// Package policy interprets metadata documents for versions: the keys of a node
// and of its chunks, and the merge of two changes of a document.
//
//	txn ── Policy ──▶ Forms        which keys of an array are chunks
//	                  Structure    what chunk bytes depend on
//	                  MergeDocument  .zattrs by key, shape by axis, …
//
//	group/zarr.json ─┬─ its own members
//	                 └─ consolidated metadata: a copy of the documents below
//	                      Copies        drops and remakes the copies in a session
//	                      TrueDocument  a copy that readers may believe
//	                      WithDocuments a store with nothing but the copy, as a view
//	                      WithTold      a store with some nodes in the copy alone, as a view
package policy
