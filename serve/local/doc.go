// Package local serves databases to other processes of the same machine, on a Unix
// socket, and is the client of such a server.
//
//	process that has the database open        another process
//
//	serve.Table ◀── Serving ◀── socket ◀───── Open ──▶ Client ──▶ txn.Remote
//	                  │                                              │
//	     pack file ───┴── descriptor, locked ──────────────▶ engine.DB of a peer
//
// [Open] opens a database in this process, or joins the process that has it open.
// Long values are not sent: the client gets the descriptor of the file in which
// they lie, and maps it. The lock on it is a lease, which the collector of garbage
// respects and which ends with the client. Where descriptors cannot pass, values
// are sent as bytes.
//
// Connections of the server's user may do everything. Connections of other
// users may read, if file permissions allow them to read the database.
package local
