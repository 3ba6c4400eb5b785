package precomputed

import (
	"encoding/json"
)

// ngff is what OME-NGFF says of the scales in a group: version 0.4 as the attribute
// "multiscales", 0.5 inside of "ome".
type ngff struct {
	Axes []struct {
		Name string `json:"name"`
		Unit string `json:"unit"`
	} `json:"axes"`
	Datasets []struct {
		Path       string          `json:"path"`
		Transforms []ngffTransform `json:"coordinateTransformations"`
	} `json:"datasets"`
	Transforms []ngffTransform `json:"coordinateTransformations"`
}

type ngffTransform struct {
	Type  string    `json:"type"`
	Scale []float64 `json:"scale"`
}

// nanometres are units of length.
var nanometres = map[string]float64{"angstrom": 0.1, "picometer": 1e-3, "nanometer": 1, "micrometer": 1e3, "millimeter": 1e6, "centimeter": 1e7, "meter": 1e9}

// ngffResolution returns the resolution in nanometres that the group says of the array
// at a path, 1 where it says nothing. Units that are not known count as nanometres.
func (p *plan) ngffResolution(path string) []float64 {
	out := []float64{1, 1, 1}
	if p.group == nil {
		return out
	}
	var scales []ngff
	if raw, ok := p.group.Attributes.Get("multiscales"); ok {
		_ = json.Unmarshal(raw, &scales) // of another kind: it says nothing here
	} else if raw, ok := p.group.Attributes.Get("ome"); ok {
		var ome struct{ Multiscales []ngff }
		_ = json.Unmarshal(raw, &ome)
		scales = ome.Multiscales
	}
	for _, m := range scales {
		for _, d := range m.Datasets {
			if d.Path != path {
				continue
			}
			for _, t := range append(d.Transforms, m.Transforms...) {
				for i, axis := range m.Axes {
					at := map[string]int{"x": 0, "y": 1, "z": 2}
					if to, ok := at[axis.Name]; ok && t.Type == "scale" && i < len(t.Scale) && t.Scale[i] > 0 {
						out[to] *= t.Scale[i]
					}
				}
			}
			for _, axis := range m.Axes {
				if f, ok := nanometres[axis.Unit]; ok {
					switch axis.Name {
					case "x":
						out[0] *= f
					case "y":
						out[1] *= f
					case "z":
						out[2] *= f
					}
				}
			}
			return out
		}
	}
	return out
}
