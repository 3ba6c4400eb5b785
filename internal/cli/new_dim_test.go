package cli

import (
	"strings"
	"testing"
)

// Dates are found in the names of sources, once and as whole numbers.
func TestNewDim(t *testing.T) {
	for _, c := range []struct{ arg, source, want, err string }{
		{"time=%Y%m", "/data/2001/tas_200103.zarr", "2001-03", ""},
		{"time=%Y%m", "https://h:8080/x/tas_200103.zarr/", "2001-03", ""},
		{"time=%Y%m", "db.zdb@v1:runs/t200103", "2001-03", ""},
		{"time=%Y%m", "db.zdb:t200103", "2001-03", ""},
		{"time=%Y%m", "file:///d/200103.zip|zip:a199901/", "2001-03", ""},
		{"time=%d.%m.%Y %H", "01.02.2003 04", "2003-02-01T04", ""},
		{"time=%Y", "y2001.nc", "2001-01", ""},
		{"time=%Y%m%d%H%M%S", "20010203040506", "2001-02-03T04:05:06", ""},
		{"time=100%%%Y", "100%2001", "2001-01", ""},
		{"time=_%Y%m-", "tas_200101-200112.nc", "2001-01", ""},
		{"time=%Y%m", "tas_200101-200112.nc", "", "the dates 2001-01 and 2001-12 are in"},
		{"time=%Y%m", "20010101.nc", "", "no such date is in"},
		{"time=%Y%q", "x", "", "%q: the fields are"},
		{"time=%Y%", "x", "", "the fields are"},
		{"time=%Y%Y", "x", "", "each once"},
		{"time=%Y%d", "x", "", "leaves no field out"},
		{"member=a", "x", "a", ""},
		{"member=a,b", "x", "", "2 values for 1 source"},
		{"member=", "x", "", "is due"},
		{"=%Y", "x", "", "is due"},
	} {
		_, labels, err := newDim(c.arg, []string{c.source})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s of %s: error %v, want %s", c.arg, c.source, err, c.err)
			}
		case err != nil || len(labels) != 1 || labels[0] != c.want:
			t.Errorf("%s of %s: %q, %v", c.arg, c.source, labels, err)
		}
	}
}
