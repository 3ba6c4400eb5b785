// Package cf decodes the values of arrays by the attributes that the CF
// conventions give them, and selects elements by the labels of coordinates.
//
//	stored   int16  -32768  120  121        scale_factor 0.1, add_offset 270,
//	            │                           _FillValue -32768
//	         [Decoder]
//	            ▼
//	decoded  float64  NaN  282  282.1
//
//	stored   int32  0  31                   units "days since 2020-01-01"
//	decoded  2020-01-01  2020-02-01         datetime64[us]
//
// A [Decoder] is made from metadata once and used for any number of elements.
// Attributes that cannot be understood are an error that names them, never a
// wrong value. A Decoder does no I/O.
//
// [Labels] are the decoded values of a coordinate. [ParseSelection] reads
// selections such as time='2020-02',lat='50':'45' by them.
package cf
