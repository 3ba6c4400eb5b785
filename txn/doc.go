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
// Nothing here knows arrays: a [Policy] reads Zarr metadata.
//
// Where to find what:
//
//	internal/namespace  keys, directories, chunk maps, diff, move, merge
//	internal/catalog    records of the index: commits, refs, reflog, sessions, …
//	internal/reach      pages and payloads that versions reach
//	internal/transfer   clone, push, pull, fetch, backup
//	internal/care       damage: checks, healing
//	internal/overlay    pages that a session has made
//	internal/bucket     what is known of buckets; their stores
//	internal/visits     peers, across the processes that have the database open
//	internal/seen       what the session of a peer has read
//	internal/away       what a lazy clone fetches
//	history             the graph of commits: log, path, blame, bisect
//
// A [DB] has a home (home.go): the process with the index, or a peer that asks it. A [Session] has
// one too (session_home.go).
//
//	open      db.go, home.go, options.go, format.go, policy in namespace.go
//	read      snapshot.go, value.go, diff.go, rev.go, time.go
//	write     session*.go, bulk.go, chunks.go, lost.go
//	commit    commit.go, group.go, publish.go, durability.go, retry.go
//	branches  refs.go, undo.go, combine.go, rebase.go
//	space     expire.go, gc*.go
//	copies    copies.go, keep.go, bucket*.go, lazy.go, fetch_payloads.go
//	repair    checkpoint.go, care*.go, heal.go
//	peers     peer*.go, source.go, remote.go, ask*.go, visit.go
package txn
