// Package pack keeps payloads, the bytes of chunks, in a directory of
// append-only files.
//
//	Append ──▶ [header|payload][header|payload]…   one or a few growing packs
//	             │        ▲
//	           Sync     View                         any pack, mapped
//	             ▼
//	        []Info, the durable ends, for the index
//
// A payload is named by its [Address]: pack, offset, length. An address never
// changes and is never used twice, so that addresses may be part of hashed
// pages, exported references may point into packs, and copies of a database
// agree on them.
//
// # Writing
//
// Append reserves a range under a short lock and writes outside it. Records
// with small payloads gather in a buffer and are readable from it; large
// payloads go straight from the caller's slice to the file. Nothing is durable
// before Sync, which returns the durable ends that belong into the index batch
// with the addresses. The order is: Append, Sync, index batch.
//
// After a failed write or sync the content of the disk is unknown. Then the pack is
// failed for good, and the store with it: Append and Sync return [ErrFailed]
// until [Store.Resume] is called. Call it when the owners of payloads behind the
// durable end of a failed pack know that these are lost.
//
// # Opening
//
// A pack goes on growing after a restart only if its file is exactly as long
// as the index records. Anything else, for example bytes that were written and
// never recorded, seals it and a new pack begins. Nothing is ever cut off or
// written over: an index that was restored from an older copy finds all its
// payloads.
//
// # Reading
//
// Packs are mapped into memory where the system can, and read with pread where not. Every block of
// 64 KiB that a read touches is compared with its checksum: a whole block of a mapped file once,
// everything else at every read. [Store.Verify], [Store.Reread] and Options.VerifyReads compare
// again. Damage is a [CorruptError], and so is a page that the disk cannot deliver, which would
// otherwise end the process.
//
// The bytes of a pack are laid down in format.go and docs/format.md;
// docs/design/packs.md has the reasons.
package pack
