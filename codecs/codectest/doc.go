// Package codectest is the suite that every codec passes:
//
//	codectest.Run(t, codectest.Case{
//		V3:    `["bytes", {"name": "zstd", "configuration": {"level": 3}}]`,
//		Type:  dtype.NewInt(16),
//		Shape: []int{7, 5},
//	})
//
// It checks that a chain prints as it was parsed, and its codecs print
// equivalent configurations; that random chunks decode to the same elements, in
// whole and in boxes, into any layout, and updated in part; that results are
// appended; that sources are read inside their bounds; that concurrent calls
// work; and that damaged bytes give an error, or wrong elements, but never a
// panic or more bytes than a chunk has.
package codectest
