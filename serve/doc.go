// Package serve serves the open databases of a process to other processes.
//
//	local socket ──┐                    ┌─▶ View      a version, a session, any target
//	HTTP ──────────┼──▶ Table ──────────┼─▶ Session   shared by name, conditional writes
//	S3 ────────────┘   Principal        └─▶ Run       a command line of zarrdb
//	                   (permissions)
//
// The [Table] holds every request that a client may make; the transports only
// translate. The subpackages are the transports:
//
//   - serve/wire is the framing of the local protocol, and knows no databases.
//   - serve/local is that protocol on a Unix socket: server and client.
//   - serve/web is HTTP: versions as files, reports as JSON, sessions.
//   - serve/auth is the key file of HTTP and S3.
//   - serve/pace and serve/metrics are the timeouts and counts of both.
//   - serve/s3 is the subset of S3 that array programs use.
package serve
