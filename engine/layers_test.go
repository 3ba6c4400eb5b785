package engine_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

const module = "github.com/zarrdb/zarrdb/"

// layers is the policy, not a description: which packages of this module each
// package may import, outside tests. A package that is not listed may not exist.
// A trailing "/" allows everything below.
var layers = map[string][]string{
	// Elements and metadata know no storage; storage knows no arrays.
	// The kinds of errors; every package may import it.
	"internal/fault": {},
	// A lock whose wait ends with a context; every package may import it.
	"internal/ctxlock": {},
	// Groups of goroutines: the caller gets their panics. Every package may import it.
	"internal/together": {},

	// The memory of all databases of a process.
	"internal/budget": {},
	// Bounded memory for what is read again and again.
	"internal/lru": {},
	// Names of hosts, and which of them are this machine.
	"internal/hostname": {},
	// Files in memory, and memory for large results.
	"internal/mmap": {},
	// Keys of chunks in byte order.
	"internal/chunklist": {"kv"},
	// A format of documents in chunks and in files of Icechunk.
	"internal/msgpack": {},

	"zarr/dtype": {},
	// The chain and its compressors; filters and objects are codecs like any other, and one package
	// lists them all.
	"codecs":                    {"zarr/dtype", "codecs/blosc", "codecs/inflate", "codecs/internal/", "codecs/kernels", "codecs/lz4", "codecs/lzma", "codecs/pco", "codecs/zstd"},
	"codecs/filter":             {"zarr/dtype", "codecs", "codecs/internal/", "codecs/kernels"},
	"codecs/object":             {"zarr/dtype", "codecs", "codecs/internal/", "internal/msgpack"},
	"codecs/builtin":            {"codecs", "codecs/filter", "codecs/object"},
	"codecs/blosc":              {"codecs/kernels", "codecs/inflate", "codecs/lz4", "codecs/zstd"},
	"codecs/lz4":                {},
	"codecs/internal/bytestest": {}, // of tests
	"codecs/internal/scratch":   {},
	"codecs/internal/swap":      {"codecs/kernels", "zarr/dtype"},
	"codecs/internal/value":     {},
	"codecs/zstd":               {},
	"codecs/inflate":            {"codecs/kernels"},
	"codecs/lzma":               {"codecs/internal/"},
	"codecs/pco":                {"codecs/kernels"},
	"codecs/kernels":            {},
	"zarr":                      {"internal/lru", "internal/mmap", "zarr/meta", "zarr/ome", "zarr/internal/jsontext", "zarr/dtype", "codecs", "codecs/builtin", "kv"},
	// Documents: parsed, printed and converted without I/O.
	"zarr/meta":              {"zarr/internal/jsontext", "zarr/dtype", "codecs"},
	"zarr/internal/jsontext": {"zarr/dtype"},
	"zarr/ome":               {"zarr/meta", "zarr/internal/jsontext"},                             // the axes of images
	"zarr/internal/metatest": {"zarr/meta", "zarr/internal/jsontext", "codecs", "codecs/builtin"}, // of tests
	"zarr/cf":                {"zarr", "zarr/dtype", "zarr/ome"},
	"zarr/npy":               {"zarr/dtype"},

	"kv":        {},
	"kv/kvtest": {"internal/must", "kv"},
	"kv/dirkv":  {"kv", "kv/internal/temp"},
	"kv/zipkv":  {"kv", "kv/gather", "kv/internal/temp"},
	"kv/digest": {},
	"kv/redact": {},

	"kv/gather": {"kv"},
	"kv/remote": {"internal/mmap", "kv", "kv/gather", "kv/redact"},
	"kv/httpkv": {"kv", "kv/remote"},
	"kv/s3kv":   {"kv", "kv/gather", "kv/remote"},
	"kv/gcskv":  {"kv", "kv/remote"},
	// Databases in a bucket: pages, payloads and refs as plain bytes. It knows no trees, packs or versions.
	"kv/depot": {"kv", "kv/digest", "kv/gather"},

	"kv/internal/osfs": {},
	"kv/internal/temp": {},
	"kv/tree":          {"kv/digest"},
	"kv/index":         {"internal/budget", "kv", "kv/digest", "kv/internal/osfs"},
	"kv/pack":          {"internal/mmap", "kv", "kv/digest", "kv/internal/osfs"},
	"txn":              {"internal/budget", "internal/lru", "kv", "kv/depot", "kv/digest", "kv/gather", "kv/index", "kv/pack", "kv/redact", "kv/tree", "txn/internal/", "txn/history"},
	// The graph of commits, which it reads through functions of txn.
	"txn/history": {"kv/tree", "txn/internal/catalog", "txn/internal/namespace"},
	// Records of the index, and nothing that decides about them.
	"txn/internal/catalog": {"kv", "kv/digest", "kv/index", "kv/pack", "kv/tree"},
	// Pages that a session has made.
	"txn/internal/overlay": {"kv/tree"},
	// What is known of buckets, and the stores that read them.
	"txn/internal/bucket": {"kv", "kv/depot", "kv/digest", "kv/index", "kv/pack"},
	// Processes that read a database which another one has open.
	"txn/internal/visits": {"kv/index", "kv/pack", "txn/internal/catalog"},
	// What the session of a peer has read.
	"txn/internal/seen": {"kv", "txn/internal/catalog"},
	// What a lazy clone fetches.
	"txn/internal/away": {"kv", "kv/depot", "kv/digest", "kv/gather", "kv/index", "kv/pack", "kv/tree", "txn/internal/bucket", "txn/internal/care", "txn/internal/catalog", "txn/internal/collect", "txn/internal/overlay", "txn/internal/transfer"},
	// What versions reach: pages and payloads, wherever they are kept.
	"txn/internal/reach": {"kv", "kv/pack", "kv/tree"},
	// Damage, found and healed, and copies of the index. The package gets the parts of an open database and does not know which process has it open.
	"txn/internal/care": {"kv", "kv/digest", "kv/index", "kv/pack", "kv/tree", "txn/internal/catalog", "txn/internal/namespace", "txn/internal/reach"},
	// What goes: versions, and what nothing reaches any more. What is open in the process is behind an interface.
	"txn/internal/collect": {"kv/digest", "kv/index", "kv/pack", "kv/tree", "txn/history", "txn/internal/care", "txn/internal/catalog", "txn/internal/reach"},
	// Versions from one database into another, of which it knows the parts.
	"txn/internal/transfer": {"kv", "kv/depot", "kv/digest", "kv/gather", "kv/index", "kv/pack", "kv/tree", "txn/history", "txn/internal/care", "txn/internal/catalog", "txn/internal/reach"},
	// The namespace knows trees; not packs, records or sessions.
	"txn/internal/namespace": {"internal/budget", "kv", "kv/digest", "kv/redact", "kv/tree"},
	"txn/internal/toy":       {"internal/must"}, // of tests
	"txn/txntest":            {"txn/history", "txn/internal/catalog"},
	"refs":                   {"internal/chunklist", "internal/lru", "kv", "kv/gather", "kv/redact", "refs/jinja", "refs/parquet"},
	"refs/jinja":             {"kv/redact"},
	"refs/parquet":           {"kv"},

	// Foreign formats are reference sets. They know no databases and no URLs.
	"formats":             {"internal/chunklist", "internal/lru", "codecs", "kv", "kv/gather", "refs", "zarr", "zarr/dtype"},
	"formats/n5":          {"formats", "internal/chunklist", "internal/lru", "codecs", "codecs/lz4", "kv", "refs", "zarr/dtype"},
	"formats/precomputed": {"formats", "internal/lru", "formats/jpeg", "formats/png", "codecs", "codecs/inflate", "kv", "refs", "zarr", "zarr/dtype", "zarr/ome"},
	"formats/avif":        {"formats", "refs"},
	"formats/hdf5":        {"formats", "internal/lru", "codecs", "codecs/builtin", "kv", "kv/gather", "refs", "zarr/cf", "zarr/dtype"},
	"formats/bmp":         {"formats", "formats/raster", "codecs"},
	"formats/jpeg":        {"formats", "formats/raster", "codecs"},
	"formats/png":         {"formats", "formats/raster", "codecs"},
	"formats/tiff":        {"formats", "codecs", "kv", "refs", "zarr/dtype"},
	"formats/webp":        {"formats", "formats/raster", "codecs"},
	"formats/raster":      {"formats", "codecs", "kv", "refs", "zarr/dtype"},
	"formats/formattest":  {"formats", "codecs", "codecs/builtin", "internal/must", "kv", "kv/dirkv", "refs", "zarr"}, // of tests
	"formats/netcdf3":     {"formats", "codecs", "refs", "zarr/cf", "zarr/dtype"},
	"formats/ocdbt":       {"formats", "codecs", "internal/lru", "kv", "refs"},
	"formats/icechunk":    {"formats", "codecs", "internal/lru", "internal/msgpack", "kv", "refs"},

	// Only the engine joins them.
	"engine/zurl":           {"kv/redact"},
	"engine/internal/names": {"zarr/meta"},
	// Decoded chunks.
	"engine/internal/cache": {"internal/budget", "kv", "zarr"},
	// Nodes in another format of Zarr.
	"engine/internal/convert": {"engine/internal/listing", "engine/internal/names", "engine/internal/transfer", "codecs", "kv", "zarr", "zarr/cf", "zarr/dtype", "zarr/meta", "zarr/ome"},
	// The keys of stores that list none.
	"engine/internal/listing": {"engine/internal/names", "internal/chunklist", "kv", "zarr"},
	// Where bytes lie: what is written must lie apart from what is read.
	"engine/internal/extent": {"engine/internal/names", "engine/zurl", "txn"},
	// Many values from one store to another.
	"engine/internal/transfer": {"internal/budget", "kv", "kv/dirkv", "kv/gather", "kv/zipkv"},
	// What documents mean to versions, and how two versions differ. Neither knows sources or
	// databases.
	"engine/internal/policy": {"engine/internal/listing", "engine/internal/names", "kv", "kv/digest", "kv/gather", "txn", "zarr", "zarr/meta", "zarr/dtype"},
	// Parts of files elsewhere; how files are opened is the engine's.
	"engine/internal/virtual": {"kv", "kv/digest", "kv/gather", "kv/redact", "kv/tree", "refs", "txn"},
	"engine/internal/compare": {"engine/internal/names", "engine/internal/policy", "kv", "txn", "zarr", "zarr/dtype"},
	// What a checked-out folder knows; it knows no databases.
	"engine/internal/checkout": {"engine/internal/names", "kv", "kv/digest", "kv/dirkv"},
	"engine/modeltest":         {}, // of tests
	// Where a URL leads; it opens stores and formats, and knows no databases.
	"engine/source": {"internal/hostname", "formats", "formats/", "zarr", "zarr/meta", "codecs", "codecs/builtin", "kv", "kv/dirkv", "kv/zipkv", "kv/httpkv", "kv/s3kv", "kv/gcskv", "kv/remote", "kv/gather", "kv/redact", "kv/tree", "txn", "refs", "engine/zurl", "engine/internal/extent", "engine/internal/names", "engine/internal/policy", "engine/internal/virtual"},
	"engine":        {"internal/budget", "formats", "zarr", "zarr/cf", "zarr/meta", "zarr/dtype", "codecs", "kv", "kv/depot", "kv/dirkv", "kv/zipkv", "kv/gather", "kv/digest", "kv/redact", "kv/index", "kv/pack", "kv/tree", "txn", "refs", "engine/source", "engine/zurl", "engine/internal/"},

	// Other processes reach what this one has open; the transports do not know each other.
	"serve":      {"engine", "internal/hostname", "internal/lru", "kv", "txn", "zarr"},
	"serve/wire": {},
	// Where a process serves a database to others of this machine.
	"serve/internal/sockets": {},
	"serve/local":            {"internal/budget", "internal/mmap", "serve", "serve/internal/sockets", "serve/wire", "engine", "kv", "kv/digest", "txn", "zarr"},
	"serve/auth":             {"internal/hostname", "serve"},
	"serve/pace":             {},
	"serve/metrics":          {"kv/redact"},
	"serve/page":             {},
	"serve/web":              {"serve", "serve/pace", "serve/page", "serve/metrics", "internal/picture", "internal/report", "engine", "kv", "txn", "zarr", "zarr/cf", "zarr/dtype", "zarr/npy"},
	"serve/s3":               {"internal/lru", "internal/mmap", "serve", "serve/auth", "serve/pace", "serve/metrics", "engine", "kv", "txn"},

	"internal/crashtest": {},                // of tests
	"internal/leaktest":  {},                // of tests
	"internal/must":      {},                // of tests
	"internal/race":      {},                // of tests
	"internal/soaktest":  {"internal/must"}, // of tests

	// What the command line and the web server show: answers as typed values, and pictures.
	"internal/report":     {"engine", "kv", "txn", "zarr", "zarr/ome"},
	"internal/picture":    {"zarr", "zarr/cf", "zarr/dtype"},
	"internal/table":      {"zarr/dtype"},
	"internal/arrowfile":  {"internal/table", "zarr/dtype"},
	"internal/cli":        {"formats", "internal/mmap", "internal/picture", "internal/report", "internal/table", "engine", "engine/", "zarr", "zarr/cf", "zarr/dtype", "zarr/npy", "kv", "txn", "serve", "serve/"},
	"cmd/zarrdb":          {"internal/arrowfile", "internal/cli"}, // embedding programs do not link arrow
	"":                    {"engine", "kv/index", "serve/local", "txn"},
	"bench":               {"", "engine", "serve", "serve/local", "serve/web", "zarr", "zarr/dtype", "kv", "kv/tree", "txn", "bench/"},
	"bench/field":         {},
	"examples/embed":      {"", "engine", "zarr"},
	"interop/arrays":      {"engine", "zarr", "zarr/dtype"},
	"python/lib":          {"python/lib/elements", "serve/local", "serve/wire"}, // a library of C
	"python/lib/elements": {"engine", "serve/local", "codecs", "kv", "kv/gather", "kv/tree", "txn", "zarr", "zarr/cf", "zarr/dtype"},
	"interop/ocdbt":       {"formats/ocdbt", "kv", "kv/dirkv", "refs"},
	"interop/refset":      {"kv/dirkv", "refs"},
	"scripts/network":     {},
	"scripts/typecheck":   {},
	"scripts/release":     {},

	"examples/share/record": {"", "engine", "zarr"},
	"examples/share/follow": {"", "engine", "zarr"},
}

// single names dependencies with one importing package each, so that each can
// be replaced in one place.
var single = map[string][]string{
	"github.com/cockroachdb/pebble/v2":     {"kv/index"},
	"github.com/cockroachdb/pebble/v2/vfs": {"kv/index", "kv/internal/osfs", "kv/pack", "internal/crashtest"}, // the file system interface that faults are injected into
	"github.com/dgraph-io/ristretto/v2":    {"engine/internal/cache"},
	"github.com/apache/arrow/go/v17":       {"internal/arrowfile"},
	"github.com/minio/minio-go/v7":         {"kv/s3kv"}, // signatures and credentials; requests are kv/remote's
	"golang.org/x/oauth2":                  {"kv/gcskv"},
	"go.uber.org/goleak":                   {"internal/leaktest"},
	"golang.org/x/image/bmp":               {"formats/bmp"},
	"golang.org/x/image/webp":              {"formats/webp"},
	"gopkg.in/ini.v1":                      {"kv/s3kv"},
	"github.com/prometheus/client_golang":  {"serve/metrics"},
	"github.com/rogpeppe/go-internal":      {"engine"}, // locks a file of the configuration
	"github.com/zeebo/blake3":              {"kv/digest"},
	"github.com/spf13/cobra":               {"internal/cli"},
	"github.com/vbauerster/mpb/v8":         {"internal/cli"},
	"github.com/ulikunitz/xz":              {"codecs", "codecs/lzma", "kv/zipkv"},
}

type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Dir        string
	GoFiles    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Standard,Imports,Dir,GoFiles", module+"...")
	list.Env = append(list.Environ(), "CGO_ENABLED=1") // otherwise files that import "C" are left out
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		must.Do(t, err)
		pkgs = append(pkgs, p)
	}
}

func allowed(imp string, list []string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		return imp == a || strings.HasSuffix(a, "/") && strings.HasPrefix(imp, a)
	})
}

func TestLayers(t *testing.T) {
	pkgs := packages(t)
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages found", len(pkgs))
	}
	for _, p := range pkgs {
		name := strings.TrimPrefix(p.ImportPath+"/", module)
		name = strings.TrimSuffix(name, "/")
		may, ok := layers[name]
		if !ok {
			t.Errorf("package %s has no place in the layers", name)
			continue
		}
		for _, imp := range p.Imports {
			if own, ok := strings.CutPrefix(imp, module); ok && own != "internal/fault" && own != "internal/ctxlock" && own != "internal/together" && !allowed(own, may) {
				t.Errorf("%s imports %s, which its layer does not allow", name, own)
			}
		}
	}
}

// large are the packages with more than 30 files, and why they are not several.
var large = map[string]string{
	"codecs":                 "one file for each codec of the registry",
	"engine":                 "the methods of a database and a session that users call; what is behind them is in engine/internal",
	"internal/cli":           "one file for each command",
	"serve/local":            "both ends of one connection: a request, its handler and its answer change together",
	"txn":                    "a session, the commit of a group and a peer share their state: docs/design/rooms.md has the doors that were counted",
	"txn/internal/namespace": "one tree of directories: lookup, change, diff and merge of one format",
	"zarr":                   "the methods of an array and a group",
}

func TestLargePackages(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if _, said := large[name]; said != (len(p.GoFiles) > 30) {
			t.Errorf("%s has %d files: divide the package, or say in large why it is one; remove a reason that is not needed", name, len(p.GoFiles))
		}
	}
}

func TestSingleImporters(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			rule := ""
			for dep := range single {
				if (imp == dep || strings.HasPrefix(imp, dep+"/")) && len(dep) > len(rule) {
					rule = dep
				}
			}
			if rule != "" && !slices.Contains(single[rule], name) {
				t.Errorf("%s imports %s; only %v may", name, imp, single[rule])
			}
		}
	}
}

// Nothing needs cgo but the library of the Python package.
func TestNoCgo(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(p.Imports, "C") && p.ImportPath != module+"python/lib" {
			t.Errorf("%s uses cgo", p.ImportPath)
		}
	}
}
