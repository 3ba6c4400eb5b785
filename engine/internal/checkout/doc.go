// Package checkout keeps what a checked-out folder knows: which version its files are of, and how each file was
// when the two agreed last. It knows no databases; engine/folder.go moves bytes.
//
//	era5.zarr/            plain Zarr, for any tool; a tool may remove and make it again
//	.era5.zarr.zarrdb/    beside it
//	    state             JSON: database, branch, commit, what goes on; replaced in one step
//	    index-N           a line a file: the value in the version, the bytes, size, time and inode
//	    stage/            values that are written, until they are synced and renamed into the folder
//
// The files cannot share storage with the database: a tool that writes in place into a hard link would damage a pack, and
// payloads begin at any offset of a pack, where no file system makes reflinks. So they are copies.
package checkout
