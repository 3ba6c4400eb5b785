// Package crashtest makes file systems for tests, on which operations fail or the power is cut:
//
//	Watch   calls a function before each operation
//	Faults  fails some operations
//	Flips   changes a bit of a read
//	Disk    makes images of the disk after a power cut before a change
package crashtest
