package zarr

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// newArrayDraft are the members of an array.json that is made anew, in their
// order. The draft leaves them open, so they are those that zarr-python 2 reads.
var newArrayDraft = []string{"attributes", "chunk_grid", "chunk_memory_layout", "compressor", "data_type", "extensions",
	"fill_value", "shape"}

// draftFilters is the attribute in which zarr-python 2 keeps the filters of an
// array of the early v3 draft, whose documents have no member for them.
const draftFilters = "filters"

// draftCodecs begins the URIs of codecs.
const draftCodecs = "https://purl.org/zarr/spec/codec/"

// printDraft adds the document of a draft node to out. Of a document that was
// parsed only what users change can change: which spelling it uses, and what it
// means by it, is its writer's.
func (m *Meta) printDraft(out map[string][]byte) error {
	switch {
	case !m.Array:
		return m.printDoc(out, docGroupDraft, []string{"attributes"}, m.memberDraft)
	case m.src == nil:
		return m.printDoc(out, docArrayDraft, newArrayDraft, m.newMemberDraft)
	}
	return m.printDoc(out, docArrayDraft, arrayDraft, m.memberDraft)
}

func (m *Meta) memberDraft(name string) (raw json.RawMessage, ok bool, err error) {
	switch {
	case name == "attributes":
		if m.Array {
			if err := m.checkFiltersDraft(); err != nil {
				return nil, false, err
			}
		}
		return m.Attributes.text(), true, nil
	case name == "shape" || name == "fill_value":
		return m.memberV2(name)
	}
	return nil, false, fmt.Errorf("early v3 draft: %w", ErrNoForm)
}

// newMemberDraft prints a member of a new array.json.
func (m *Meta) newMemberDraft(name string) (raw json.RawMessage, ok bool, err error) {
	switch name {
	case "extensions":
		raw, ok = m.extra[name]
		return raw, ok, nil
	case "chunk_grid":
		raw, err = m.printGridDraft()
	case "chunk_memory_layout":
		return m.memberV2("order")
	case "compressor":
		if raw, _, err = m.memberV2(name); err != nil || string(raw) == "null" {
			return nil, false, err
		}
		raw = printCodecDraft(raw)
	case "data_type":
		switch raw, err = m.Type.PrintV2(); string(raw) {
		case `"|b1"`:
			raw = json.RawMessage(`"bool"`)
		case `"|i1"`, `"|u1"`:
			raw = json.RawMessage(`"` + string(raw[2:]))
		}
	default:
		if m.DimensionNames != nil {
			return nil, false, fmt.Errorf("dimension names: %w", ErrNoForm)
		}
		return m.memberDraft(name)
	}
	return raw, true, err
}

// printGridDraft prints chunk_grid. A separator makes the keys begin with "c",
// as readers of both forms take it.
func (m *Meta) printGridDraft() (json.RawMessage, error) {
	shape, _, err := m.memberV2("chunks")
	if err != nil {
		return nil, err
	}
	list := []jsonMember{{"chunk_shape", shape}}
	switch {
	case m.Keys.enc == keysDraft:
		list = append(list, jsonMember{"separator", json.RawMessage{'"', m.Keys.sep, '"'}})
	case m.Keys != V2Keys('.', len(m.Shape)):
		return nil, fmt.Errorf("chunk keys that the early draft does not have: %w", ErrNoForm)
	}
	return joinMembers(append(list, jsonMember{"type", json.RawMessage(`"regular"`)})), nil
}

// printCodecDraft is the reverse of codecDraft.
func printCodecDraft(v2 json.RawMessage) json.RawMessage {
	config, _ := members(v2)
	var list []jsonMember
	for _, m := range config {
		if m.name == "id" {
			id, _ := asString(m.value)
			list = append(list, jsonMember{"codec", dtype.AppendString(nil, draftCodecs+id+"/1.0")})
		}
	}
	config = slices.DeleteFunc(config, func(m jsonMember) bool { return m.name == "id" })
	return joinMembers(append(list, jsonMember{"configuration", joinMembers(config)}))
}

// attributeFilters returns the filters that an array of the draft keeps among its
// attributes, nil if it has none; ok is false if its document has a member for
// them.
func (m *Meta) attributeFilters() (filters json.RawMessage, ok bool, err error) {
	if d := m.src.doc(docArrayDraft); d != nil {
		if slices.ContainsFunc(d.members, func(x jsonMember) bool { return x.name == "codecs" }) {
			return nil, false, nil
		}
		if raw, there := m.src.model.Attributes.Get(draftFilters); there && isFilters(raw) {
			return raw, true, nil
		}
		return nil, true, nil
	}
	v, err := m.Codecs.V2()
	if list, _ := items(orNull(v.Filters)); err != nil || len(list) == 0 {
		return nil, true, err
	}
	return v.Filters, true, nil
}

// setAttributesDraft sets the attributes of a draft array, to which filters that
// are kept there are added: without them the chunks would read as something else.
func (m *Meta) setAttributesDraft(a Attributes) error {
	filters, _, err := m.attributeFilters()
	if _, there := a.Get(draftFilters); filters != nil && !there {
		a.put(draftFilters, filters)
	}
	m.Attributes = a
	return err
}

// checkFiltersDraft makes sure that the attributes say of filters what m says.
func (m *Meta) checkFiltersDraft() error {
	filters, ok, err := m.attributeFilters()
	if err != nil || !ok {
		return err
	}
	raw, there := m.Attributes.Get(draftFilters)
	switch {
	case filters != nil && !(there && sameJSON(raw, filters)):
		return fmt.Errorf("the attribute %q is where the early v3 draft keeps filters, which are %s: %w", draftFilters, show(filters), ErrNoForm)
	case filters == nil && there && isFilters(raw):
		return fmt.Errorf("the attribute %q would be taken for filters: %w", draftFilters, ErrNoForm)
	}
	return nil
}
