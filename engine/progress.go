package engine

import "sync/atomic"

// Progress is the progress of long work.
type Progress struct {
	// Keys of TotalKeys are done; the total is 0 where it is not known.
	Keys, TotalKeys int64
	// Bytes were copied.
	Bytes int64
}

// meter counts finished work and reports about every mebibyte or 256 keys.
type meter struct {
	total       int64
	keys, bytes atomic.Int64
	reported    atomic.Int64
	busy        atomic.Bool
}

func (m *meter) add(bytes int64, report func(Progress)) { m.addMany(1, bytes, report) }

func (m *meter) addMany(keys, bytes int64, report func(Progress)) {
	k, b := m.keys.Add(keys), m.bytes.Add(bytes)
	if report == nil || !m.due(k, b) || !m.busy.CompareAndSwap(false, true) {
		return
	}
	defer m.busy.Store(false)
	// Read again: another goroutine may have reported more by now.
	report(Progress{Keys: m.keys.Load(), TotalKeys: m.total, Bytes: m.bytes.Load()})
}

func (m *meter) due(keys, bytes int64) bool {
	at := keys>>8 + bytes>>20
	last := m.reported.Load()
	return at > last && m.reported.CompareAndSwap(last, at)
}
