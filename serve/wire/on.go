package wire

// OnView is a request about a view that is open on the connection. On returns the
// handle of that view.
type OnView interface{ On() uint32 }

// On implements [OnView].
func (h Handle) On() uint32 { return h.View }

// On implements [OnView].
func (s Stat) On() uint32 { return s.View }

// On implements [OnView].
func (s Set) On() uint32 { return s.View }

// On implements [OnView].
func (p OwnPages) On() uint32 { return p.View }

// On implements [OnView].
func (s Stage) On() uint32 { return s.View }
