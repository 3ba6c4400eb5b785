package meta

import "encoding/json"

// Parts that only tests from outside use.
var (
	AppendNames = appendNames
	SameGrid    = sameGrid
	SameName    = sameName
)

const DimensionsKey = dimensionsKey

// Extra returns the members that the model has no place for.
func (m *Meta) Extra() map[string]json.RawMessage { return m.extra }
