// Package bucket has what a database knows of the buckets that it is pushed to and pulled from, and the stores that read them.
//
//	[State]    DB/remotes/<name>: the last manifest, indexes of bundles, what an interrupted push has uploaded
//	[Store]    opened by the first request; another process may send the requests, with its credentials: see [Asker]
//	[Counted]  counts requests and bytes
//
// Package kv/depot has the format of a bucket, and package txn the transfers.
package bucket
