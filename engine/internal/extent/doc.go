// Package extent compares where bytes lie, so that nothing is written over its own
// source. Every function of the engine that writes to a destination asks it before
// it changes anything there:
//
//	Export             directory, zip, memory, bucket ─┐
//	ExportReferences   JSON file, parquet directory   ─┼─▶ Separate
//	Backup, Clone, Restore, Salvage                   ─┘
//	the caller's own file                             ──▶ engine.Source.Apart
//	files that references lead to                     ──▶ Against(dest).With(file), many times
//
// Paths of this machine are compared by the file that they lead to (device and
// inode), through links; keys of other stores by their names.
package extent
