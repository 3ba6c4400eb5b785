// Package codectest is the suite that every codec passes:
//
//	codectest.Run(t, codectest.Case{
//		V3:    `["bytes", {"name": "zstd", "configuration": {"level": 3}}]`,
//		Type:  dtype.NewInt(16),
//		Shape: []int{7, 5},
//	})
//
// It checks that a chain prints as it was parsed, and its codecs print what
// means the same; that random chunks come back as they were, in whole and in
// boxes, into any layout, and updated in part; that results are appended; that
// sources are read inside their bounds; that everything may happen at once; and
// that damaged bytes give an error, or wrong elements, but never a panic or more
// bytes than a chunk has.
package codectest
