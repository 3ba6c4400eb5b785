// Package txn keeps versions of a map from keys to bytes.
//
// From outside it is a plain map; inside, everything is a persistent tree of
// content-named pages, so a version is one root and costs nothing to keep.
//
//	branch "main" ──▶ commit ──▶ parent commit ──▶ …      tags, reflog
//	                    │ root
//	                    ▼
//	               directory ──▶ directory ──▶ documents (.zarray, zarr.json …)
//	                                 └──▶ chunk map: coordinates ──▶ value
//	                                                  inline │ pack address │ URL + range
//
//	session = base commit + working root + write buffer ──Commit──▶ new commit
//
// A [Snapshot] is one version, readable for ever. A [Session] is a transaction
// on a branch: any number may be open, each sees its own writes, and Commit
// publishes all of them or none. When the branch has moved in the meantime,
// changes that do not touch each other merge; others are a [ConflictError].
//
// Nothing here knows arrays: what must be known of Zarr metadata is asked
// through [Policy].
package txn
