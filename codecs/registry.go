package codecs

import (
	"fmt"
	"slices"
	"sync"
)

// Entry is one codec of a registry.
type Entry struct {
	// V2 is its numcodecs id in v2 metadata, or "".
	V2 string
	// V3 are its names in v3 metadata. The first is printed when a chain is
	// converted, the rest are aliases.
	V3 []string
	// Kind is the same in both name spaces.
	Kind Kind
	// Lossless means that decoding gives back every element that was encoded.
	Lossless bool
	// Flat means that an array is encoded as the list of its elements in C order, whatever
	// its shape is. Codecs of bytes need not say so.
	Flat bool
	// Parse reads the configuration. Errors are made with [BadField] or come
	// from [Fields.Err].
	Parse func(Config) (Codec, error)
}

// Registry maps names to codecs: numcodecs ids for v2 and, separately, extension
// names for v3. Parsing is safe for concurrent use; register all codecs before.
type Registry struct {
	v2, v3 map[string]*Entry

	// known are chains of v3 by the text that they were parsed from. Most arrays of
	// a store have one of a few lists of codecs.
	mu    sync.RWMutex
	known map[string]Chain
}

// Bounds of Registry.known. A full map is emptied.
const (
	knownChains = 128
	knownText   = 2 << 10 // bytes; longer lists are parsed each time
)

// lookup returns the chain of a text that was parsed before.
func (r *Registry) lookup(list []byte) (Chain, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, ok := r.known[string(list)]
	return c, ok
}

// remember keeps the chain of a text.
func (r *Registry) remember(list []byte, c Chain) {
	if len(list) > knownText {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= knownChains {
		r.known = make(map[string]Chain)
	}
	r.known[string(list)] = c
}

// NewRegistry returns a registry of only the given codecs.
func NewRegistry(entries ...Entry) *Registry {
	r := &Registry{v2: make(map[string]*Entry), v3: make(map[string]*Entry)}
	for _, e := range entries {
		r.Register(e)
	}
	return r
}

// Register adds a codec. A name that is taken is a bug and panics.
func (r *Registry) Register(e Entry) {
	if e.Parse == nil || e.Kind < ArrayToArray || e.Kind > BytesToBytes || e.V2 == "" && len(e.V3) == 0 {
		panic(fmt.Sprintf("codecs: incomplete entry %q %q", e.V2, e.V3))
	}
	r.known = nil
	add := func(m map[string]*Entry, name string) {
		if m[name] != nil {
			panic(fmt.Sprintf("codecs: %q is registered twice", name))
		}
		m[name] = &e
	}
	if e.V2 != "" {
		add(r.v2, e.V2)
	}
	for _, name := range e.V3 {
		add(r.v3, name)
	}
}

// Names returns the names of both name spaces, unordered, for tables and
// tests.
func (r *Registry) Names() (v2, v3 []string) {
	for name := range r.v2 {
		v2 = append(v2, name)
	}
	for name := range r.v3 {
		v3 = append(v3, name)
	}
	return v2, v3
}

// Lookup returns the codec of that v2 id or v3 name.
func (r *Registry) Lookup(name string, v2 bool) (Entry, bool) {
	m := r.v3
	if v2 {
		m = r.v2
	}
	e := m[name]
	if e == nil {
		return Entry{}, false
	}
	return *e, true
}

// Refusal is a codec that is known and not supported.
type Refusal struct {
	// V2 and V3 are its names in the two name spaces.
	V2, V3 []string
	// Why is the reason, the end of a sentence.
	Why string
}

// Refusals returns the codecs that are refused by name, for tables: opening an
// array that uses one fails with ErrUnknown and the reason. The caller owns the
// slice.
func Refusals() []Refusal { return slices.Clone(refusals) }

// unknown returns ErrUnknown with the name.
type unknown struct{ name string }

func (u unknown) Error() string {
	for _, r := range refusals {
		if slices.Contains(r.V2, u.name) || slices.Contains(r.V3, u.name) {
			return fmt.Sprintf("codec %q is refused: %s", u.name, r.Why)
		}
	}
	return fmt.Sprintf("unknown codec %q", u.name)
}

func (u unknown) Is(target error) bool { return target == ErrUnknown }
