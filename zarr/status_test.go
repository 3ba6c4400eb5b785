package zarr

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

//go:generate go test -run TestStatus . -update

var update = flag.Bool("update", false, "write docs/status.md")

const (
	statusFile = "../docs/status.md"
	// interopFile is what the comparison with other implementations found equal.
	interopFile = "../interop/verified.json"
)

// TestStatus: docs/status.md says what the registries and the evidence say now.
func TestStatus(t *testing.T) {
	s := newStatus()
	s.golden(t)
	s.interop(t)
	got := s.print(t)
	if *update {
		must.Do(t, os.WriteFile(statusFile, got, 0o666))
	}
	want := must.Get(os.ReadFile(statusFile))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: go generate ./zarr", statusFile)
	}
}

// fact is a cell of the table: arrays of a format version, a data type and a
// codec.
type fact struct{ version, typ, codec string }

// status is the evidence: which implementations give the same values.
type status struct {
	read, write map[fact]map[string]bool
	// releases are the versions of each implementation, by letter.
	releases map[string]map[string]bool
}

func newStatus() *status {
	return &status{read: map[fact]map[string]bool{}, write: map[fact]map[string]bool{}, releases: map[string]map[string]bool{}}
}

// letters stand for implementations in the table.
var letters = []struct{ prefix, letter, name string }{
	{"zarr-python 1", "P1", "zarr-python 1"}, {"zarr-python 2", "P2", "zarr-python 2"}, {"zarr-python", "P", "zarr-python"},
	{"tensorstore", "T", "tensorstore"}, {"zarrs", "Z", "zarrs"}, {"zarrita", "J", "zarrita.js"}, {"zarr-java", "V", "zarr-java"}, {"GDAL", "G", "GDAL"},
}

// add notes that an implementation agrees. What was made by hand counts for
// nothing.
func (s *status) add(m map[fact]map[string]bool, f fact, impl string) {
	impl, _, _ = strings.Cut(impl, " / ")
	impl, _, _ = strings.Cut(impl, " (")
	impl, _, _ = strings.Cut(impl, " ZARR_")
	for _, l := range letters {
		if strings.HasPrefix(impl, l.prefix) {
			if m[f] == nil {
				m[f] = map[string]bool{}
			}
			m[f][l.letter] = true
			if s.releases[l.letter] == nil {
				s.releases[l.letter] = map[string]bool{}
			}
			s.releases[l.letter][impl] = true
			return
		}
	}
}

// golden takes the stores in testdata/stores, which TestStores reads: who wrote
// them, and who else read the same values.
func (s *status) golden(t *testing.T) {
	t.Helper()
	for _, area := range storeAreas[:4] {
		for _, c := range storeCases(t, area) {
			if c.Kind != "array" && c.Kind != "hierarchy" {
				continue
			}
			nodes := c.Nodes
			if c.Kind == "array" {
				nodes = []storeNode{c.storeNode}
			}
			for _, n := range nodes {
				if n.NodeType == "group" {
					continue
				}
				node := must.Get(Open(context.Background(), c.view(t), n.Path, nil))(t)
				a, ok := node.Array()
				if !ok {
					continue
				}
				for _, codec := range codecNames(t, a.Meta()) {
					f := fact{a.Meta().Version.String(), family(a.Type()), codec}
					for _, impl := range append(c.VerifiedBy, c.Writer) {
						s.add(s.read, f, impl)
					}
				}
			}
		}
	}
}

// interop adds the comparison with other implementations: whether they read arrays written
// here, and whether arrays written by them are read here.
func (s *status) interop(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(interopFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var lines []struct {
		Impl      string          `json:"impl"`
		Format    json.RawMessage `json:"zarr_format"` // 1, 2 or 3
		DataType  json.RawMessage `json:"data_type"`
		Codec     string          `json:"codec"`
		Layout    string          `json:"layout"`
		ReadsOurs bool            `json:"reads_ours"`
		WeRead    bool            `json:"we_read"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &lines)
	}
	must.Do(t, err)
	reg := builtin.Registry()
	for _, l := range lines {
		version, typ := evidenceVersion(t, l.Format), ""
		list := strings.Split(l.Codec, "+")
		if l.Codec == "none" {
			list = nil
		}
		if version == V3 && !slices.Contains(list, "numcodecs.pcodec") {
			list = append(list, "bytes")
		}
		if strings.Contains(l.Layout, "shard") {
			list = append(list, "sharding_indexed")
		}
		if strings.Contains(l.Layout, "transpose") {
			list = append(list, "transpose")
		}
		typ = evidenceType(t, l.DataType, version, list)
		switch typ {
		case "string":
			list = replaced(list, "bytes", "vlen-utf8")
		case "bytes":
			list = replaced(list, "bytes", "vlen-bytes")
		}
		if len(list) == 0 {
			list = []string{plain}
		}
		for _, codec := range list {
			if codec != plain {
				e, ok := reg.Lookup(codec, version != V3)
				if !ok {
					t.Fatalf("%s: codec %q is not registered", interopFile, codec)
				}
				codec = rowName(e, version != V3)
			}
			f := fact{version.String(), typ, codec}
			if l.ReadsOurs {
				s.add(s.write, f, l.Impl)
			}
			if l.WeRead {
				s.add(s.read, f, l.Impl)
			}
		}
	}
}

// replaced is for v3 chains whose elements have no fixed size.
func replaced(list []string, old, name string) []string {
	list = slices.Clone(list)
	for i, s := range list {
		if s == old {
			list[i] = name
		}
	}
	return list
}

func evidenceVersion(t *testing.T, raw json.RawMessage) Version {
	t.Helper()
	for _, v := range []Version{V1, V2, V3} {
		if strings.Trim(string(raw), `"`) == v.String() {
			return v
		}
	}
	t.Fatalf("%s: zarr_format %s", interopFile, raw)
	return 0
}

// evidenceType returns the row of a data type as the comparison calls it.
func evidenceType(t *testing.T, raw json.RawMessage, v Version, list []string) string {
	t.Helper()
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return "struct"
	}
	if strings.HasPrefix(name, "struct") {
		return "struct"
	}
	if v != V3 {
		object := dtype.Type{}
		for _, id := range list {
			if typ, ok := dtype.ObjectV2(json.RawMessage(`{"id":"` + id + `","dtype":"<i4"}`)); ok && id != "categorize" {
				object = typ
			}
		}
		typ, err := dtype.ParseV2(raw, object)
		if err != nil {
			t.Fatalf("%s: %s: %v", interopFile, raw, err)
		}
		return family(typ)
	}
	if typ, ok := dtype.Named(name); ok {
		return family(typ)
	}
	if name == "raw_bytes" {
		return rawFamily
	}
	if !slices.Contains(dtype.Names(), name) {
		t.Fatalf("%s: data type %q", interopFile, name)
	}
	return name
}

const (
	rawFamily = `r\*`
	plain     = "(none)" // v2: no filter and no compressor
)

// family is the row of a data type.
func family(t dtype.Type) string {
	switch t.Kind() {
	case dtype.Raw:
		return rawFamily
	case dtype.FixedBytes:
		return "null_terminated_bytes"
	case dtype.FixedUTF32:
		return "fixed_length_utf32"
	case dtype.Datetime:
		return "numpy.datetime64"
	case dtype.Timedelta:
		return "numpy.timedelta64"
	case dtype.Struct:
		return "struct"
	case dtype.Ragged:
		return "ragged"
	}
	return t.String()
}

// rowName is the name of a codec's row.
func rowName(e codecs.Entry, v2 bool) string {
	if v2 {
		return e.V2
	}
	return e.V3[0]
}

// codecNames returns the rows of all codecs of an array, those inside shards
// too.
func codecNames(t *testing.T, m *Meta) []string {
	t.Helper()
	found := map[string]bool{}
	reg := builtin.Registry()
	var walk func(raw json.RawMessage, key string)
	walk = func(raw json.RawMessage, key string) {
		if list, ok := listOf(raw); ok {
			for _, item := range list {
				walk(item, key)
			}
			return
		}
		var name string
		var obj map[string]json.RawMessage
		if json.Unmarshal(raw, &name) != nil && json.Unmarshal(raw, &obj) == nil {
			if json.Unmarshal(obj[key], &name) != nil {
				return
			}
			var config map[string]json.RawMessage
			_ = json.Unmarshal(obj["configuration"], &config) // none is fine
			if config["codecs"] != nil {
				walk(config["codecs"], key)
			}
		}
		if e, ok := reg.Lookup(name, key == "id"); ok {
			found[rowName(e, key == "id")] = true
		}
	}
	if m.Codecs.IsV2() {
		v := must.Get(m.Codecs.V2())(t)
		walk(v.Filters, "id")
		walk(v.Compressor, "id")
		if len(found) == 0 {
			found[plain] = true
		}
	} else {
		raw := must.Get(m.Codecs.PrintV3())(t)
		walk(raw, "name")
	}
	return slices.Sorted(maps.Keys(found))
}

func listOf(raw json.RawMessage) ([]json.RawMessage, bool) {
	var list []json.RawMessage
	return list, json.Unmarshal(raw, &list) == nil && list != nil
}

func (s *status) print(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`# Status of formats, data types and codecs

Generated by ` + "`go generate ./zarr`" + ` from the registries, from the stores in
` + "`zarr/testdata/stores`" + ` and from ` + "`interop/verified.json`" + `, what the comparison with other
implementations (` + "`make interop`" + `) found equal. A test fails when this file is stale.

Everything listed is read and written; the early draft of v3 is only read. *Reads* names
the implementations whose arrays are read here with the values that they stored,
*writes* those that read the same values from arrays written here. Where neither names
one, the codec is tested on its own: it brings back what it was given, takes part in
random chains, and is fuzzed.

`)
	for _, l := range letters {
		if r := s.releases[l.letter]; r != nil {
			fmt.Fprintf(&b, "- **%s** %s\n", l.letter, strings.Join(slices.Sorted(maps.Keys(r)), ", "))
		}
	}
	b.WriteString("\nGDAL takes part with two-dimensional arrays of v2: the v3 that this release has is older than the codec `bytes`.\n")
	for _, v := range []Version{V3, V2} {
		fmt.Fprintf(&b, "\n## Zarr v%v\n\n| codec | data types | reads | writes |\n|---|---|---|---|\n", v)
		reg := builtin.Registry()
		for _, row := range codecRows(reg, v) {
			s.printCodec(t, &b, reg, v, row)
		}
	}
	b.WriteString("\nObject arrays of v2 (`|O`) are `string`, `bytes`, `json` or `ragged` by their filter; other data types by their kind, in both byte orders.\n")
	for _, old := range []struct {
		v          Version
		title, has string
	}{
		{V1, "Zarr v1", "Data types that need no filter, and compressors, are those of v2. Arrays are created, read and written. zarr-python 2\nreads those written here after its own migration of their metadata to v2."},
		{Draft3, "The early draft of v3", "Data types and codecs are those of v2. Arrays and groups are read, in both layouts, and never written: an export\nmakes v2 or v3 of them."},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| codec | data types | reads | writes |\n|---|---|---|---|\n", old.title, old.has)
		s.printSeen(&b, old.v)
	}
	b.WriteString("\n## Refused\n\nArrays that use these, and codecs that stand in no table here, are listed with the name and the reason, imported, linked,\nversioned and exported with their bytes. Reading them fails. [formats.md](formats.md) has what is refused of foreign formats, and why AVIF is.\n\n| v3 name | v2 id | reason |\n|---|---|---|\n")
	for _, r := range codecs.Refusals() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(r.V3), code(r.V2), r.Why)
	}
	return b.Bytes()
}

func code(names []string) string { return "`" + strings.Join(names, "` `") + "`" }

// codecRow is a codec under its names of one version.
type codecRow struct {
	name    string
	aliases []string
	kind    codecs.Kind
}

func codecRows(reg *codecs.Registry, v Version) []codecRow {
	names2, names3 := reg.Names()
	names := names3
	if v == V2 {
		names = names2
	}
	var rows []codecRow
	for _, name := range names {
		e, _ := reg.Lookup(name, v == V2)
		if rowName(e, v == V2) != name {
			continue
		}
		r := codecRow{name: name, kind: e.Kind}
		if v == V3 {
			r.aliases = e.V3[1:]
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b codecRow) int { return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.name, b.name)) })
	if v == V2 {
		rows = append([]codecRow{{name: plain}}, rows...)
	}
	return rows
}

// printCodec prints a row for each group of data types that the same
// implementations stand for.
func (s *status) printCodec(t *testing.T, b *bytes.Buffer, reg *codecs.Registry, v Version, row codecRow) {
	t.Helper()
	groups := map[marks][]string{}
	var order []marks
	for _, typ := range statusTypes(t) {
		f := fact{v.String(), family(typ), row.name}
		if !takes(t, reg, v, row, typ) {
			if s.read[f] != nil || s.write[f] != nil {
				t.Errorf("%v was verified with %s, which does not take it", typ, row.name)
			}
			continue
		}
		m := s.marks(f)
		if groups[m] == nil {
			order = append(order, m)
		}
		groups[m] = append(groups[m], family(typ))
	}
	if len(order) == 0 {
		t.Errorf("no data type goes with %s", row.name)
	}
	title := "`" + row.name + "`"
	if row.name == plain {
		title = "none"
	}
	if len(row.aliases) > 0 {
		title += " (also " + code(row.aliases) + ")"
	}
	if row.kind != 0 {
		title += ", " + strings.ReplaceAll(row.kind.String(), "->", "→")
	}
	for _, m := range order {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", title, shortened(groups[m]), m.read, m.write)
		title = ""
	}
}

// shortened joins names, those of the narrow floats as one where all are there.
func shortened(list []string) string {
	for _, prefix := range []string{"float8_", "float6_", "complex_float8_", "complex_float6_"} {
		of := func(name string) bool { return strings.HasPrefix(name, prefix) }
		all := slices.DeleteFunc(dtype.Names(), func(name string) bool { return !of(name) })
		at := slices.IndexFunc(list, of)
		if at >= 0 && slices.Equal(all, slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !of(name) })) {
			list[at] = prefix + `\*`
			list = append(list[:at+1], slices.DeleteFunc(list[at+1:], of)...)
		}
	}
	return strings.Join(list, ", ")
}

// marks are the cells of a row: who stands for reading, and for writing.
type marks struct{ read, write string }

func (s *status) marks(f fact) marks { return marks{marked(s.read[f]), marked(s.write[f])} }

// printSeen prints what was verified, and nothing else.
func (s *status) printSeen(b *bytes.Buffer, v Version) {
	facts := map[fact]bool{}
	for _, m := range []map[fact]map[string]bool{s.read, s.write} {
		for f := range m {
			facts[f] = f.version == v.String()
		}
	}
	seen := map[string]map[marks][]string{}
	for f, of := range facts {
		if !of {
			continue
		}
		if seen[f.codec] == nil {
			seen[f.codec] = map[marks][]string{}
		}
		m := s.marks(f)
		seen[f.codec][m] = append(seen[f.codec][m], f.typ)
	}
	for _, codec := range slices.Sorted(maps.Keys(seen)) {
		order := func(a, b marks) int { return cmp.Or(cmp.Compare(a.read, b.read), cmp.Compare(a.write, b.write)) }
		for _, m := range slices.SortedFunc(maps.Keys(seen[codec]), order) {
			types := seen[codec][m]
			slices.Sort(types)
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", codec, strings.Join(types, ", "), m.read, m.write)
		}
	}
}

func marked(by map[string]bool) string {
	var list []string
	for _, l := range letters {
		if by[l.letter] {
			list = append(list, l.letter)
		}
	}
	return strings.Join(list, " ")
}
