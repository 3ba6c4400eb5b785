package meta

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// Print returns the metadata documents of a node by the last component of
// their keys: {"zarr.json": …}, {".zarray": …, ".zattrs": …}, {"meta": …,
// "attrs": …}, {"array.json": …}. Parsing them gives an equal Meta.
//
// Documents that m was parsed from come back byte for byte if m still has their
// meaning. Otherwise the members that changed are printed anew in their old
// place. Other members keep their text; only the white space between them
// changes. Members that are new come last. It fails with an error that is
// ErrNoForm, [dtype.ErrNoForm] or [codecs.ErrNoForm] if the format version cannot
// express m; the early v3 draft has a form only for metadata that was parsed and
// not changed. The caller owns the documents.
//
// In v1 and v2 the names of dimensions are printed as an attribute if they were
// changed; otherwise that attribute is printed as Attributes has it.
func (m *Meta) Print() (map[string][]byte, error) {
	out := make(map[string][]byte)
	var err error
	switch {
	case m.Version == V3 && m.Array:
		err = m.printDoc(out, DocV3, arrayV3, m.memberV3)
	case m.Version == V3:
		err = m.printDoc(out, DocV3, groupV3, m.memberV3)
	case m.Version == V2 && m.Array:
		err = cmp.Or(m.printDoc(out, DocArrayV2, arrayV2, m.memberV2), m.printAttributes(out, DocAttrsV2, false))
	case m.Version == V2:
		err = cmp.Or(m.printDoc(out, DocGroupV2, []string{"zarr_format"}, m.memberV2), m.printAttributes(out, DocAttrsV2, false))
	case m.Version == V1 && m.Array:
		err = cmp.Or(m.printDoc(out, DocArrayV1, arrayV1, m.memberV1), m.printAttributes(out, DocAttrsV1, true))
	case m.Version == Draft3:
		err = m.printDraft(out)
	default:
		err = fmt.Errorf("node of format %s: %w", m.Version, ErrNoForm)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// indent is the indentation of other writers of the format.
func (m *Meta) indent() string {
	if m.Version == V3 {
		return "  "
	}
	return "    "
}

// printMember prints one member of a document; ok is false if it is left out.
type printMember func(name string) (raw json.RawMessage, ok bool, err error)

// printDoc adds a document to out.
func (m *Meta) printDoc(out map[string][]byte, name string, order []string, print printMember) error {
	list, same, err := m.printMembers(name, order, print)
	if err != nil {
		return err
	}
	if d := m.src.doc(name); same && d != nil && d.text != nil {
		out[name] = slices.Clone(d.text)
		return nil
	}
	flat := jsontext.Join(list)
	dst := make([]byte, 0, len(flat)+len(flat)/4)
	out[name] = append(jsontext.AppendIndented(dst, flat, m.indent(), 0), '\n')
	return nil
}

// printMembers returns the members of a document, and whether they equal the members that m was
// parsed from. order lists the members that the model knows.
func (m *Meta) printMembers(doc string, order []string, print printMember) (list []jsontext.Member, same bool, err error) {
	same = true
	done := make(map[string]bool)
	add := func(name string) error {
		raw, ok, err := print(name)
		if err != nil {
			p := parser{doc: doc}
			return p.fail(name, err)
		}
		if ok {
			list = append(list, jsontext.Member{Name: name, Value: raw})
		}
		return nil
	}
	if d := m.src.doc(doc); d != nil {
		for _, x := range d.members {
			done[x.Name] = true
			known := slices.Contains(order, x.Name)
			extra, isExtra := m.extra[x.Name]
			switch {
			case known && !m.changed(x.Name):
				list = append(list, x)
			case known:
				same = false
				if err := add(x.Name); err != nil {
					return nil, false, err
				}
			case isExtra:
				same = same && string(extra) == string(x.Value)
				list = append(list, jsontext.Member{Name: x.Name, Value: extra})
			default:
				same = false
			}
		}
	}
	for _, name := range order {
		if !done[name] && (m.src.doc(doc) == nil || m.changed(name)) {
			done[name], same = true, false
			if err := add(name); err != nil {
				return nil, false, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.extra)) {
		if !done[name] {
			same = false
			list = append(list, jsontext.Member{Name: name, Value: m.extra[name]})
		}
	}
	return list, same, nil
}

// changed reports whether the text of a member that m was parsed from does not
// fit m any more.
func (m *Meta) changed(member string) bool {
	o := m.src.model
	field := member
	if m.Version != V3 {
		if f, ok := fieldsV2[member]; ok {
			field = f
		}
	}
	if m.Version != o.Version || m.differs(o, field) {
		return true
	}
	switch field {
	case "attributes":
		// Another order or spelling is a change of the text.
		return !slices.EqualFunc(m.Attributes.list, o.Attributes.list, func(a, b jsontext.Member) bool {
			return a.Name == b.Name && string(a.Value) == string(b.Value)
		})
	case "chunk_grid":
		return m.src.zeroChunks && m.differs(o, "shape")
	case "fill_value": // its form depends on the type, and base64 on the byte order
		return m.differs(o, "data_type") || m.Type.Kind() == dtype.Struct && m.differs(o, "codecs")
	case "codecs": // v2 prints the byte order with the type
		return m.Version != V3 && m.differs(o, "data_type")
	}
	return false
}

// printAttributes adds the document of a v1 or v2 node's attributes to out if
// there are any, there was a document before, or always is set.
func (m *Meta) printAttributes(out map[string][]byte, name string, always bool) error {
	a := m.Attributes
	if m.Array {
		var err error
		if a, err = m.attributesV2(); err != nil {
			p := parser{doc: name}
			return p.fail(dimensionsKey, err)
		}
	}
	d := m.src.doc(name)
	if d != nil && slices.EqualFunc(a.list, d.members, func(x, y jsontext.Member) bool {
		return x.Name == y.Name && string(x.Value) == string(y.Value)
	}) {
		out[name] = slices.Clone(d.text)
		return nil
	}
	if d != nil || a.Len() > 0 || always {
		out[name] = append(jsontext.AppendIndented(nil, a.Text(), m.indent(), 0), '\n')
	}
	return nil
}
