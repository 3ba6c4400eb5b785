// Package swap changes the byte order of elements, whole or field by field.
//
//	element │ int32 │ a byte │ two float16 │ …
//	swapped │ 3 2 1 0 │ 0 │ 1 0 1 0 │ …
//
// The codec "bytes" stores elements with it, and filters and "vlen-array" bring
// with it into memory order what they find in stored order.
package swap
