// Package visits knows the peers of a database across the processes that have the database open.
//
// The leases of a peer end with the process that has the database open (the holder). The next
// holder must not collect before the peer has renewed them. So each peer has a file that is
// locked while the peer lives:
//
//	first holder  makes and locks peers/NAME, and gives the peer the descriptor
//	next holder   finds peers/NAME locked: a collection waits for a visit of the peer
//	peer          visits with NAME, and renews its leases, also those of versions that expired
//
// The system releases the lock when the peer ends, even if the peer is killed.
//
// A peer that does nothing while its program does not call it, such as a client in Python, cannot
// come back at once. It writes the versions that it has open into its file, and a collection keeps them:
//
//	process 42 of user alice
//	0123456789abcdef0123456789abcdef01234567
//	(blanks: the peer has closed a version)
package visits
