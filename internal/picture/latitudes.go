package picture

import (
	"context"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// latitudeNames are the names that models give to latitudes of their grids, which arrays use
// without an attribute that names them.
var latitudeNames = []string{"lat", "latitude", "nav_lat", "XLAT", "XLAT_M", "XLAT_U", "XLAT_V", "lat_rho", "lat_u", "lat_v", "lat_psi", "TLAT", "ULAT", "gphit", "geolat"}

// latitudesAscend reports whether latitudes of two or more axes ascend along a dimension.
func latitudesAscend(ctx context.Context, a *zarr.Array, dim int, beside cf.Opener) bool {
	names := a.DimensionNames()
	if dim < 0 || dim >= len(names) || names[dim] == "" || len(names) < 2 || a.Shape()[dim] < 2 {
		return false
	}
	for _, name := range append(Coordinates(a), latitudeNames...) {
		known := slices.Contains(latitudeNames, name)
		n, err := beside(ctx, name)
		if err != nil {
			continue
		}
		lat, ok := n.Array()
		if !ok || !isLatitude(lat.Meta(), known) || Numeric(lat.Type()) != nil {
			continue
		}
		d := slices.Index(lat.DimensionNames(), names[dim])
		if d < 0 || len(lat.Shape()) < 2 || lat.Shape()[d] != a.Shape()[dim] {
			continue
		}
		rise, err := riseAlong(ctx, lat, d)
		return err == nil && rise > 0
	}
	return false
}

// isLatitude reports whether a node holds latitudes. known says that the name of the node is one of latitudes.
func isLatitude(m *zarr.Meta, known bool) bool {
	if name := attribute(m, "standard_name"); name != "" {
		return name == "latitude"
	}
	units := strings.ToLower(strings.NewReplacer(" ", "", "_", "").Replace(attribute(m, "units")))
	if north, ok := strings.CutPrefix(strings.Replace(units, "degrees", "degree", 1), "degree"); ok && north != "" {
		return strings.HasPrefix(north, "n")
	}
	return known && (units == "" || strings.HasPrefix(units, "degree"))
}

// globe is "lat" or "lon" for a coordinate of degrees of the globe, by its attributes or its name.
func globe(m *zarr.Meta, name string) string {
	name = strings.ToLower(name)
	units := strings.ToLower(strings.NewReplacer(" ", "", "_", "").Replace(attribute(m, "units")))
	side, degrees := strings.CutPrefix(strings.Replace(units, "degrees", "degree", 1), "degree")
	switch standard := attribute(m, "standard_name"); {
	case !degrees && units != "", standard != "" && standard != "latitude" && standard != "longitude":
		return ""
	case isLatitude(m, name == "lat" || name == "latitude"):
		return "lat"
	case standard == "longitude", degrees && strings.HasPrefix(side, "e"), side == "" && (name == "lon" || name == "longitude"):
		return "lon"
	}
	return ""
}

// riseAlong is the sum of differences between the last and the first row along a dimension.
func riseAlong(ctx context.Context, a *zarr.Array, d int) (float64, error) {
	dec, err := cf.NewDecoder(a.Meta())
	if err != nil {
		return 0, err
	}
	at := make([]zarr.Index, len(a.Shape()))
	for k, n := range a.Shape() {
		at[k] = zarr.At(0)
		if k >= len(at)-2 && k != d {
			at[k] = zarr.Slice(0, n, max(n/64, 1))
		}
	}
	var rows [2][]float64
	for i, k := range []int64{0, a.Shape()[d] - 1} {
		at[d] = zarr.At(k)
		s := side{a, dec, dec.Type()}
		b, err := s.read(ctx, zarr.Orthogonal(at...))
		if err != nil {
			return 0, err
		}
		rows[i] = AppendFloats(nil, s.t, b)
	}
	sum := 0.0
	for i, v := range rows[1] {
		if by := v - rows[0][i]; by == by {
			sum += by
		}
	}
	return sum, nil
}
