// Package sockets finds and makes the socket at which a process serves a database to others of this machine.
//
//	<folder for temporary files>/zarrdb-<user>/…   [Place]: mostly here
//	DB/index/SOCKET                                [Inside]: for processes with another such folder
//
// Modes of the socket follow those of the files: who may read these may connect. Where the system tells, [UserOf] is the
// user at the other end.
package sockets
