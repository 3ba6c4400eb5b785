package kv

// As finds the first layer of view that has type T: view itself, or what it
// wraps, and so on through every [Unwrapper].
//
// It is for things that a whole stack shares, such as an io.Closer or a
// statistics method. The capabilities declared in this package are not looked
// up this way: a layer may change what they mean, so functions like [Locate]
// ask the outermost view only. For the same reason a layer that renames keys
// or takes rights away ([Sub], [ReadOnly]) is no Unwrapper.
func As[T any](view any) (T, bool) {
	for view != nil {
		if t, ok := view.(T); ok {
			return t, true
		}
		u, ok := view.(Unwrapper)
		if !ok {
			break
		}
		view = u.Unwrap()
	}
	var zero T
	return zero, false
}
