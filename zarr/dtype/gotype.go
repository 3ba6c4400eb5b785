package dtype

import "reflect"

// Of returns the data type whose elements are the values of a Go type: bool,
// int8 to int64, uint8 to uint64, float32, float64, complex64, complex128 and
// types made of them, string (String) and []byte (Bytes). ok is false for any
// other, int and uint among them: their width is not fixed.
func Of[T any]() (t Type, ok bool) {
	g := reflect.TypeFor[T]()
	switch g.Kind() {
	case reflect.Bool:
		return NewBool(), true
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return NewInt(g.Bits()), true
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return NewUint(g.Bits()), true
	case reflect.Float32, reflect.Float64:
		return NewFloat(g.Bits()), true
	case reflect.Complex64, reflect.Complex128:
		return NewComplex(g.Bits()), true
	case reflect.String:
		return NewString(), true
	case reflect.Slice:
		if g.Elem().Kind() == reflect.Uint8 {
			return NewBytes(), true
		}
	}
	return Type{}, false
}
