package namespace

import "github.com/zarrdb/zarrdb/kv/tree"

// Map is the directory or chunk map that an entry refers to.
type Map struct {
	Path string
	Form *Form
}

// ReadEntry classifies an entry of the directory at path or, with a form, of its
// chunk map. A document has a key, a chunk a key and coordinates; a sub-directory
// and a chunk map have below. Other reserved entries have none of them.
func ReadEntry(path string, form *Form, e tree.Entry) (key string, chunk []int64, below *Map, err error) {
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
			return "", nil, &Map{path, &f}, nil
		}
		return "", nil, nil, nil
	case isSub(e.Key):
		if e.Value.Kind != tree.KindChild {
			return "", nil, nil, corrupt("directory entry %q is not a directory", e.Key)
		}
		return "", nil, &Map{path + string(e.Key), nil}, nil
	case e.Value.Kind == tree.KindChild:
		return "", nil, nil, corrupt("document %q is a directory", e.Key)
	}
	return path + string(e.Key), nil, nil, nil
}
