// Package zipkv reads and writes zip archives as views: a member is a key.
//
//	local header │ bytes of "a" │ local header │ bytes of "b" │ … │ directory │ end
//	             ▲                                              │            │
//	             └── ranges of stored members are ranges of ────┘            │
//	                 the archive; others are decompressed       Open reads from here
//
// [Open] takes any kv.Value, so an archive may lie in a directory, behind HTTP
// or in another archive. [Writer] makes one; the same members give the same
// bytes.
//
// # Reading
//
// Methods: stored (0), deflate (8), bzip2 (12), lzma (14), zstd (93, and 20 as
// it was first numbered). Other methods and encrypted members are errMethod
// when they are read, not when the archive is opened. Zip64, data descriptors,
// bytes before the archive and any comments are supported; archives in several
// parts are not.
//
// Of several members with one name the last is used, as in Python's zipfile.
// Names that end in a slash are directories and no keys. Names without the UTF-8
// flag are read as UTF-8 if they are valid UTF-8, else as code page 437. Members
// with an absolute name, with a backslash, or with "." or ".." in it are no
// keys; [Reader.Refused] lists them.
//
// [kv.Gather] reads members that lie close together in an archive on a server,
// and their headers, with one request.
//
// # Hostile archives
//
// The index of an open archive grows with the bytes of its directory. A declared
// size reserves no memory: memory for a member grows with its decompressed
// bytes, up to its declared size and to 256 MiB. A contradiction
// is kv.ErrCorrupt. The checksum is verified whenever a member is read from
// beginning to end, so not for a range of a stored member.
package zipkv
