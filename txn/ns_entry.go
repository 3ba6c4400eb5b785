package txn

import "github.com/zarrdb/zarrdb/kv/tree"

// mapPlace is a map below an entry.
type mapPlace struct {
	path string
	form *Form
}

// placeEntry says what an entry of a directory or chunk map is: a key with its
// value, and the coordinates of a chunk; a map below; or nothing that is looked
// at any further.
func placeEntry(path string, form *Form, e tree.Entry) (key string, chunk []int64, below *mapPlace, err error) {
	if form != nil {
		b, ok := form.print([]byte(path), e.Key)
		if !ok || e.Value.Kind == tree.KindChild {
			return "", nil, nil, corrupt("chunk map of %q: coordinates %x", path, e.Key)
		}
		return string(b), form.numbers(e.Key), nil, nil
	}
	switch {
	case isReserved(e.Key):
		var state dirState
		if err := state.addReserved(e); err != nil {
			return "", nil, nil, err
		}
		if len(state.forms) > 0 {
			f := state.forms[0].Form
			return "", nil, &mapPlace{path, &f}, nil
		}
		return "", nil, nil, nil
	case isSub(e.Key):
		if e.Value.Kind != tree.KindChild {
			return "", nil, nil, corrupt("directory entry %q is no directory", e.Key)
		}
		return "", nil, &mapPlace{path + string(e.Key), nil}, nil
	case e.Value.Kind == tree.KindChild:
		return "", nil, nil, corrupt("document %q is a directory", e.Key)
	}
	return path + string(e.Key), nil, nil, nil
}
