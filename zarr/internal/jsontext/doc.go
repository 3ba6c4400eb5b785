// Package jsontext reads and writes JSON as text.
//
//	document ─▶ Check ─▶ Members, Items, String, Int ─▶ Join ─▶ document
//
// Metadata is kept as its original text, so that unchanged members are printed unchanged.
// One strict pass over a document, [Check], checks syntax,
// nesting and names; after it the other functions cut the text without looking twice.
//
// Beyond RFC 8259 a bare NaN, Infinity or -Infinity is a value, since Python's
// json module writes them into attributes and fill values; and a name may not
// stand twice in an object, since readers would disagree on what it means.
package jsontext
