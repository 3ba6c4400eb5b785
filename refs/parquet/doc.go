// Package parquet reads and writes the partition files of parquet reference
// sets: flat tables of the four columns path, offset, size and raw.
//
//	"PAR1" │ row group: pages of path │ pages of offset │ … │ footer │ length │ "PAR1"
//	         └─ column chunk ───────┘
//	page:  header (thrift) │ levels: which rows are null │ values, or numbers of a dictionary
//
// It knows nothing of keys, arrays or URLs; package refs does.
//
// # Features
//
// Files as the writers of sets make them with fastparquet and Arrow: data pages
// of version 1 and 2; the encodings PLAIN and dictionary; no compression, snappy,
// gzip, zstd and LZ4_RAW; required and optional columns; any number of row groups
// and pages; further columns, which are skipped. Other features are an error
// that matches errors.ErrUnsupported.
//
// # Why not a library
//
// The reader: files come from strangers, and a page header may claim anything.
// Of 3960 copies of a file with one byte changed, Arrow for Go v17 panicked on
// 2235 and once reserved 203 GiB; arrow-go v18 panicked on 60 of 13360. Here
// every size is checked against the length of the file before memory is taken
// ([Options].MaxBytes bounds it), and a contradiction is kv.ErrCorrupt. It reads
// twice as many rows in a second (28 against 13 million, one core).
//
// The writer: Arrow v17 makes a new zstd encoder for each page and column, and
// hashes each row's path although the rows are numbered already. Exports of
// many small arrays took 14 times the CPU time and 3.4 times the memory; the
// figures are in docs/design/reference-sets.md. An executable without Arrow is
// 9 MB smaller. Arrow is the oracle of the tests.
package parquet
