package meta

import "github.com/zarrdb/zarrdb/zarr/internal/jsontext"

// FormOf returns the chunk key form that a metadata document names, as
// [Meta.Form] does, given the last component of its key. It needs nothing but
// the shape and the chunk key encoding, and works for documents that cannot be
// opened, because a codec is not known or anything else is wrong. ok is false
// for any other document. Chunks of the early v3 draft do not lie beside their
// document, so it has no form here.
func FormOf(name string, doc []byte) (prefix string, sep byte, rank int, ok bool) {
	switch name {
	case DocV3, DocArrayV2, DocArrayV1:
	default:
		return "", 0, 0, false
	}
	if name == DocV3 && IsGroupV3(doc) {
		return "", 0, 0, false
	}
	p := &parser{doc: name}
	_, obj, err := p.read(doc)
	if err != nil {
		return "", 0, 0, false
	}
	m := &Meta{Array: true}
	if m.Shape, err = p.shape(obj); err != nil {
		return "", 0, 0, false
	}
	switch name {
	case DocV3:
		if kind, _ := jsontext.String(obj.Get("node_type")); kind != "array" || p.version(obj, 3) != nil || p.keysV3(m, obj) != nil {
			return "", 0, 0, false
		}
	case DocArrayV2:
		if p.version(obj, 2) != nil || p.keysV2(m, obj) != nil {
			return "", 0, 0, false
		}
	default:
		if p.version(obj, 1) != nil {
			return "", 0, 0, false
		}
		m.Keys = V2Keys('.', len(m.Shape))
	}
	return m.Form()
}

// IsGroupV3 reports whether a zarr.json says that its node is a group. It reads no more
// of the document than that: a group may carry the metadata of very many nodes.
func IsGroupV3(doc []byte) bool {
	kind, _ := jsontext.String(jsontext.First(doc, "node_type"))
	return kind == "group"
}
