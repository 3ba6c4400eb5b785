package transfer

import "sync/atomic"

// Progress is the progress of long work.
type Progress struct {
	// Keys of TotalKeys are done; the total is 0 where it is not known.
	Keys, TotalKeys int64
	// Bytes were copied.
	Bytes int64
}

// Meter counts finished work and reports about every mebibyte or 256 keys. Reports do
// not overlap. Safe for concurrent use.
type Meter struct {
	// Total is the number of keys to come, 0 if it is not known. It is set before.
	Total int64
	// Keys and Bytes were counted.
	Keys, Bytes atomic.Int64
	reported    atomic.Int64
	busy        atomic.Bool
}

// Add counts one key; report may be nil.
func (m *Meter) Add(bytes int64, report func(Progress)) { m.AddMany(1, bytes, report) }

// AddMany counts several keys; report may be nil.
func (m *Meter) AddMany(keys, bytes int64, report func(Progress)) {
	k, b := m.Keys.Add(keys), m.Bytes.Add(bytes)
	if report == nil || !m.due(k, b) || !m.busy.CompareAndSwap(false, true) {
		return
	}
	defer m.busy.Store(false)
	// Read again: another goroutine may have reported more by now.
	report(Progress{Keys: m.Keys.Load(), TotalKeys: m.Total, Bytes: m.Bytes.Load()})
}

func (m *Meter) due(keys, bytes int64) bool {
	at := keys>>8 + bytes>>20
	last := m.reported.Load()
	return at > last && m.reported.CompareAndSwap(last, at)
}
