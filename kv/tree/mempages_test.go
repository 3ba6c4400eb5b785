package tree

import (
	"context"
	"iter"
	"sync"
)

// MemPages is a page store in memory. Safe for concurrent use.
type MemPages struct {
	mu    sync.RWMutex
	pages map[Name][]byte
	bytes int64
}

var _ Pages = (*MemPages)(nil)

// NewMemPages returns an empty store.
func NewMemPages() *MemPages { return &MemPages{pages: map[Name][]byte{}} }

// GetPage implements [Pages].
func (m *MemPages) GetPage(_ context.Context, name Name) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p, ok := m.pages[name]; ok {
		return p, nil
	}
	return nil, ErrMissing
}

// PutPage implements [Pages]. It keeps page.
func (m *MemPages) PutPage(_ context.Context, name Name, page []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.pages[name]; !ok {
		m.pages[name] = page
		m.bytes += int64(len(page))
	}
	return nil
}

// Delete removes a page.
func (m *MemPages) Delete(name Name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes -= int64(len(m.pages[name]))
	delete(m.pages, name)
}

// Size returns how many pages there are and their bytes.
func (m *MemPages) Size() (pages int, bytes int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.pages), m.bytes
}

// Build makes a map of entries in strictly ascending order of keys. It holds
// one page per level in memory.
func (t *Tree) Build(ctx context.Context, seq iter.Seq2[Entry, error]) (Root, error) {
	b := t.NewBuilder(ctx)
	for e, err := range seq {
		if err != nil {
			return Root{}, err
		}
		if err := b.Add(&e); err != nil {
			return Root{}, err
		}
	}
	return b.Finish()
}
