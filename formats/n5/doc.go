// Package n5 reads containers of N5 (the file-system specification of
// github.com/saalfeldlab/n5, version 4) as Zarr hierarchies.
//
//	attributes.json          zarr.json      a group
//	g/                       g/zarr.json    a group without attributes
//	g/a/attributes.json      g/a/zarr.json  an array, with the codec n5_default
//	g/a/0/0, g/a/0/1 …       the same       its chunks, as they are
//
// Documents are made when they are asked for: to open one array of a container, one attributes file
// is read. Dimensions are in the order of attributes.json, as tensorstore has them; the first one
// varies fastest in a block. Attributes are the attributes in the file that do not describe the
// dataset; attributes are not inherited from the groups above. An "axes" attribute with a name for
// each dimension, as tensorstore writes it, gives the dimension names; without it they are dim_0,
// dim_1 and so on.
//
// Blocks of numbers in mode "default" are read, in mode "varlength" if they have a
// number for each element; data type "string" is mode "varlength" with strings, as the
// Java implementation writes it. Data type "object", compressions that are not in the
// specification, except blosc and zstd, and sharded datasets are refused by name: the
// array is listed and copied, and opening it gives the reason.
package n5
