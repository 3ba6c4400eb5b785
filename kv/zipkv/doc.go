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
// it was first numbered). Other methods and encrypted members are [ErrMethod]
// when they are read, not when the archive is opened. Zip64, data descriptors,
// bytes before the archive and comments with anything in them are understood;
// archives in several parts are not.
//
// Of members with one name the last counts, as in Python's zipfile. Names that
// end in a slash are directories and no keys. Names without the UTF-8 flag are
// taken as UTF-8 where they are, else as code page 437. Members with an
// absolute name, with a backslash, or with "." or ".." in it are never shown;
// [Reader.Refused] lists them.
//
// An archive on a server is asked for what lies close in it at once, several
// members and their headers together, where members are gathered ([kv.Gather]).
//
// # Hostile archives
//
// The index of an open archive is as large as its directory really is. A
// declared size costs nothing: memory for a member grows with what comes out
// of it, up to its declared size and to Options.MaxMemberBytes. Whatever
// contradicts itself is kv.ErrCorrupt. The checksum is verified whenever a
// member is read to its end from the beginning, which a range of a stored
// member is not.
package zipkv
