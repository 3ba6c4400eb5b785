package meta

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// Consolidated metadata is a copy of the documents of all nodes below a group,
// for stores that are slow to list. The copy may be out of date or lack nodes, because it has
// the state that its writer saw.

// DocConsolidatedV2 is the name of the v2 document with the metadata of all
// nodes of a store.
const DocConsolidatedV2 = ".zmetadata"

// consolidatedV3 checks the consolidated metadata in the document of a group, and
// parses its nodes if all is set. Consolidated metadata of the groups in it is not
// parsed: writers leave it empty or repeat the outer one.
func (p *parser) consolidatedV3(m *Meta, obj jsontext.Object, all bool) error {
	const field = "consolidated_metadata"
	raw, ok := obj.Lookup(field)
	if !ok || m.Array || string(raw) == "null" {
		return nil
	}
	inline, ok := jsontext.Members(raw)
	if !ok {
		return p.fail(field, errors.New("not an object"))
	}
	nodes, ok := jsontext.Members(inline.Get("metadata"))
	if kind, _ := jsontext.String(inline.Get("kind")); kind != "inline" || !ok {
		if ignorable(raw) {
			return nil
		}
		return p.fail(field, errors.New("not inline metadata, and must be understood"))
	}
	if !all {
		return nil
	}
	m.Consolidated = make(map[string]*Meta, len(nodes))
	for _, x := range nodes {
		path, err := inlinePath(x.Name)
		var child *Meta
		if err == nil {
			p.doc = path + "/" + DocV3
			child, err = p.childV3(x.Value)
			p.doc = DocV3
		}
		m.addConsolidated(path, child, err)
	}
	return nil
}

// inlinePath returns the path of a node in consolidated metadata. A name that is no path is
// returned unchanged.
func inlinePath(name string) (string, error) {
	path, err := CleanPath(name)
	switch {
	case err != nil:
		return name, err
	case path == "":
		return name, fmt.Errorf("%w: the group itself stands in its consolidated metadata", ErrPath)
	}
	return path, nil
}

// addConsolidated adds a node, or the reason why there is none. Of two
// spellings of one path the first counts.
func (m *Meta) addConsolidated(path string, child *Meta, err error) {
	if m.Consolidated[path] != nil {
		return
	}
	if err == nil {
		m.Consolidated[path] = child
		delete(m.ConsolidatedErrors, path)
		return
	}
	if m.ConsolidatedErrors == nil {
		m.ConsolidatedErrors = make(map[string]error)
	}
	m.ConsolidatedErrors[path] = err
}

// childV3 parses a node inside consolidated metadata.
func (p *parser) childV3(raw json.RawMessage) (*Meta, error) {
	d := sourceDoc{name: DocV3, text: raw}
	obj, err := d.open()
	if err != nil {
		return nil, p.fail("", err)
	}
	p.zeroChunks = false
	m, failed := p.nodeV3(obj)
	if m != nil {
		d.text = nil
		// No private copy: there may be very many nodes.
		m.src = &source{docs: []sourceDoc{d}, model: m, zeroChunks: p.zeroChunks}
	}
	if failed != nil {
		return nil, failed
	}
	return m, nil
}

// printInline prints consolidated_metadata. Nodes that could not be parsed keep
// the text that they had.
func (m *Meta) printInline() (json.RawMessage, error) {
	kept := m.unparsed()
	var list []jsontext.Member
	for _, path := range sortedPaths(m.Consolidated, kept) {
		child, ok := m.Consolidated[path]
		if !ok {
			list = append(list, jsontext.Member{Name: path, Value: kept[path]})
			continue
		}
		x, err := child.entryV3(path)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return joinInline(list), nil
}

// entryV3 is a node as a member of consolidated metadata.
func (m *Meta) entryV3(path string) (x jsontext.Member, err error) {
	if m.Version != V3 {
		return x, fmt.Errorf("%s: node of format %s: %w", path, m.Version, ErrNoForm)
	}
	order := groupV3
	if m.Array {
		order = arrayV3
	}
	doc, _, err := m.printMembers(DocV3, order, m.memberV3)
	if err != nil {
		return x, fmt.Errorf("%s: %w", path, err)
	}
	return jsontext.Member{Name: path, Value: jsontext.Join(doc)}, nil
}

func joinInline(list []jsontext.Member) json.RawMessage {
	dst := json.RawMessage(`{"kind":"inline","must_understand":false,"metadata":`)
	return append(append(dst, jsontext.Join(list)...), '}')
}

// unparsed returns the text of the nodes in ConsolidatedErrors.
func (m *Meta) unparsed() map[string]json.RawMessage {
	kept := make(map[string]json.RawMessage)
	d := m.src.doc(DocV3)
	if d == nil || len(m.ConsolidatedErrors) == 0 {
		return kept
	}
	i := slices.IndexFunc(d.members, func(x jsontext.Member) bool { return x.Name == "consolidated_metadata" })
	if i < 0 {
		return kept
	}
	obj, _ := jsontext.Members(d.members[i].Value)
	nodes, _ := jsontext.Members(obj.Get("metadata"))
	for _, x := range nodes {
		path, _ := inlinePath(x.Name)
		if _, ok := m.ConsolidatedErrors[path]; ok && m.Consolidated[path] == nil {
			kept[path] = x.Value
		}
	}
	return kept
}

// sortedPaths orders parents before children, and paths of one depth by name.
func sortedPaths(nodes map[string]*Meta, more map[string]json.RawMessage) []string {
	paths := slices.AppendSeq(slices.Collect(maps.Keys(nodes)), maps.Keys(more))
	slices.SortFunc(paths, byDepth)
	return paths
}

func byDepth(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
}

// ParseConsolidatedV2 parses .zmetadata, the metadata of all nodes of a v2
// store by path relative to the group that holds it, that group as "" among
// them. Nodes that cannot be parsed are in broken, with the reason. The slice is
// the caller's again afterwards. err is a [FieldError].
func ParseConsolidatedV2(doc []byte, reg *codecs.Registry) (nodes map[string]*Meta, broken map[string]error, err error) {
	p := &parser{doc: DocConsolidatedV2, reg: reg}
	_, obj, err := p.read(doc)
	if err != nil {
		return nil, nil, err
	}
	raw, err := p.need(obj, "zarr_consolidated_format")
	if err != nil {
		return nil, nil, err
	}
	if n, err := jsontext.Int(raw); err != nil || n != 1 {
		return nil, nil, p.fail("zarr_consolidated_format", fmt.Errorf("%s where 1 is due", jsontext.Show(raw)))
	}
	list, err := p.object(obj, "metadata")
	if err != nil {
		return nil, nil, err
	}
	attrs := make(map[string]json.RawMessage)
	for _, x := range list {
		if dir, name := cutName(x.Name); name == DocAttrsV2 {
			attrs[dir] = x.Value
		}
	}
	all := &Meta{Consolidated: make(map[string]*Meta)}
	for _, x := range list {
		dir, name := cutName(x.Name)
		if name != DocArrayV2 && name != DocGroupV2 {
			continue
		}
		path, err := CleanPathV2(dir)
		if err != nil {
			all.addConsolidated(dir, nil, err)
			continue
		}
		m, err := p.childV2(name, x, attrs[dir])
		if err == nil && m.Array {
			delete(all.Consolidated, path) // what has the document of a group too stays an array
		}
		all.addConsolidated(path, m, err)
	}
	return all.Consolidated, all.ConsolidatedErrors, nil
}

// ConsolidatedDocuments returns the documents that .zmetadata copies, by their keys
// relative to it. err is a [FieldError].
func ConsolidatedDocuments(doc []byte) (map[string][]byte, error) {
	p := &parser{doc: DocConsolidatedV2}
	_, obj, err := p.read(doc)
	if err != nil {
		return nil, err
	}
	list, err := p.object(obj, "metadata")
	if err != nil {
		return nil, err
	}
	docs := make(map[string][]byte, len(list))
	for _, x := range list {
		switch _, name := cutName(x.Name); name {
		case DocArrayV2, DocGroupV2, DocAttrsV2:
			docs[x.Name] = x.Value
		}
	}
	return docs, nil
}

// cutName splits a key before its last component.
func cutName(key string) (dir, name string) {
	i := strings.LastIndexByte(key, '/')
	return key[:max(i, 0)], key[i+1:]
}

// childV2 parses a node inside consolidated metadata.
func (p *parser) childV2(name string, x jsontext.Member, attrs json.RawMessage) (*Meta, error) {
	defer func() { p.doc = DocConsolidatedV2 }()
	p.doc = x.Name
	d := sourceDoc{name: name, text: x.Value}
	obj, err := d.open()
	if err != nil {
		return nil, p.fail("", err)
	}
	var m *Meta
	p.zeroChunks = false
	if name == DocArrayV2 {
		m, err = p.arrayV2(obj)
	} else {
		m, err = p.groupV2(obj)
	}
	if m == nil {
		return nil, err
	}
	failed := err
	d.text = nil
	docs := []sourceDoc{d}
	if attrs != nil {
		a := sourceDoc{name: DocAttrsV2, text: attrs}
		if _, err := a.open(); err != nil {
			return nil, p.fail("", fmt.Errorf("its attributes are %w", err))
		}
		docs = append(docs, a)
		m.setAttributesV2(Attributes{a.members})
	}
	m.src = &source{docs: docs, model: m, zeroChunks: p.zeroChunks}
	if failed != nil {
		return nil, failed
	}
	return m, nil
}

// UpdateConsolidatedV3 sets the consolidated metadata of a v3 group: nodes, by path relative to
// the group, and the nodes of an earlier member consolidated_metadata whose paths are not
// changed. earlier is the text of the member, or nil for nodes alone. Its cost grows with the
// length of the text and with nodes, not with all copies. The slice and the map are the caller's
// again afterwards.
func (m *Meta) UpdateConsolidatedV3(earlier []byte, changed func(path string) bool, nodes map[string]*Meta) error {
	var was jsontext.Object
	if earlier != nil {
		obj, _ := jsontext.Members(earlier)
		var ok bool
		if was, ok = jsontext.Members(obj.Get("metadata")); !ok {
			p := &parser{doc: DocV3}
			return p.fail("consolidated_metadata", errors.New("not inline metadata"))
		}
	}
	list := make([]jsontext.Member, 0, len(was)+len(nodes))
	for _, x := range was {
		if path, _ := inlinePath(x.Name); !changed(path) {
			list = append(list, x)
		}
	}
	for path, child := range nodes {
		x, err := child.entryV3(path)
		if err != nil {
			return err
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b jsontext.Member) int { return byDepth(a.Name, b.Name) })
	m.inline = joinInline(list)
	return nil
}

// UpdateConsolidatedV2 returns a .zmetadata, in which "" is the path of the group itself; see
// [Meta.UpdateConsolidatedV3].
func UpdateConsolidatedV2(earlier []byte, changed func(path string) bool, nodes map[string]*Meta) ([]byte, error) {
	var list []jsontext.Member
	if earlier != nil {
		p := &parser{doc: DocConsolidatedV2}
		_, obj, err := p.read(earlier)
		if err != nil {
			return nil, err
		}
		was, err := p.object(obj, "metadata")
		if err != nil {
			return nil, err
		}
		for _, x := range was {
			if dir, _ := cutName(x.Name); !changed(strings.Trim(dir, "/")) {
				list = append(list, x)
			}
		}
	}
	for path, m := range nodes {
		if m.Version != V2 {
			return nil, fmt.Errorf("%s: node of format %s: %w", path, m.Version, ErrNoForm)
		}
		docs, err := m.Print()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for name, text := range docs {
			if path != "" {
				name = path + "/" + name
			}
			list = append(list, jsontext.Member{Name: name, Value: bytes.TrimSpace(text)})
		}
	}
	slices.SortFunc(list, func(a, b jsontext.Member) int { return cmp.Compare(a.Name, b.Name) })
	doc := jsontext.Join([]jsontext.Member{{Name: "metadata", Value: jsontext.Join(list)}, {Name: "zarr_consolidated_format", Value: json.RawMessage("1")}})
	return append(jsontext.AppendIndented(nil, doc, "    ", 0), '\n'), nil
}

// CarriesNodes reports whether the document that m was parsed from, or m itself, carries
// consolidated metadata (v3).
func (m *Meta) CarriesNodes() bool {
	if m.inline != nil || m.Consolidated != nil {
		return true
	}
	d := m.src.doc(DocV3)
	return d != nil && slices.ContainsFunc(d.members, func(x jsontext.Member) bool {
		return x.Name == "consolidated_metadata" && string(x.Value) != "null"
	})
}
