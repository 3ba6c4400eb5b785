package cf

// A calendar counts days. Day 0 is 1970-01-01 in each of them; years are
// astronomical, so there is a year 0.
type calendar struct {
	name  string
	days  func(y, m, d int64) int64
	civil func(day int64) (y, m, d int64)
	// length is the number of days of a month.
	length func(y, m int64) int64
}

// The calendars by the names that CF gives them.
var calendars = map[string]*calendar{
	"standard":            &mixed,
	"gregorian":           &mixed,
	"proleptic_gregorian": &gregorian,
	"noleap":              &noleap,
	"365_day":             &noleap,
	"360_day":             &days360,
	"julian":              &julian,
	"all_leap":            &allLeap,
	"366_day":             &allLeap,
}

var gregorian = calendar{
	name: "proleptic_gregorian",
	days: func(y, m, d int64) int64 {
		y, n := fromMarch(y, m)
		return 365*y + floor(y, 4) - floor(y, 100) + floor(y, 400) + n + d - 1 - marchEpoch
	},
	civil: func(day int64) (y, m, d int64) {
		day += marchEpoch
		// 400 years have 146097 days; inside of them, leap days are taken out.
		era := floor(day, 146097)
		in := day - era*146097
		year := (in - in/1460 + in/36524 - in/146096) / 365
		rest := in - (365*year + year/4 - year/100)
		return toJanuary(year+400*era, rest)
	},
	length: func(y, m int64) int64 {
		if m == 2 && y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return monthLengths[m-1]
	},
}

var julian = calendar{
	name: "julian",
	days: func(y, m, d int64) int64 {
		y, n := fromMarch(y, m)
		return 365*y + floor(y, 4) + n + d - 1 - marchEpoch - 2
	},
	civil: func(day int64) (y, m, d int64) {
		day += marchEpoch + 2
		era := floor(day, 1461)
		in := day - era*1461
		year := (in - in/1460) / 365
		return toJanuary(year+4*era, in-365*year)
	},
	length: func(y, m int64) int64 {
		if m == 2 && y%4 == 0 {
			return 29
		}
		return monthLengths[m-1]
	},
}

// mixed is Julian up to 1582-10-04 and Gregorian from the day after, which is
// 1582-10-15.
var mixed = calendar{
	name: "standard",
	days: func(y, m, d int64) int64 {
		if before(y, m, d, 1582, 10, 15) {
			return julian.days(y, m, d)
		}
		return gregorian.days(y, m, d)
	},
	civil: func(day int64) (y, m, d int64) {
		if day < reform {
			return julian.civil(day)
		}
		return gregorian.civil(day)
	},
	length: func(y, m int64) int64 {
		if before(y, m, 1, 1582, 10, 15) {
			return julian.length(y, m)
		}
		return gregorian.length(y, m)
	},
}

var reform = gregorian.days(1582, 10, 15)

var (
	noleap  = fixedYears("noleap", monthLengths)
	allLeap = fixedYears("all_leap", [12]int64{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31})
)

// fixedYears is a calendar whose years all have the same months.
func fixedYears(name string, months [12]int64) calendar {
	year := int64(0)
	for _, n := range months {
		year += n
	}
	return calendar{
		name: name,
		days: func(y, m, d int64) int64 {
			n := int64(0)
			for i := range m - 1 {
				n += months[i]
			}
			return year*(y-1970) + n + d - 1
		},
		civil: func(day int64) (y, m, d int64) {
			y = floor(day, year)
			rest := day - year*y
			for m = 1; rest >= months[m-1]; m++ {
				rest -= months[m-1]
			}
			return y + 1970, m, rest + 1
		},
		length: func(_, m int64) int64 { return months[m-1] },
	}
}

var days360 = calendar{
	name: "360_day",
	days: func(y, m, d int64) int64 { return 360*(y-1970) + 30*(m-1) + d - 1 },
	civil: func(day int64) (y, m, d int64) {
		y = floor(day, 360)
		rest := day - 360*y
		return y + 1970, rest/30 + 1, rest%30 + 1
	},
	length: func(_, _ int64) int64 { return 30 },
}

var monthLengths = [12]int64{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// marchEpoch is the number of days from 0000-03-01 to 1970-01-01 in the
// Gregorian calendar; in the Julian one it is two more.
const marchEpoch = 719468

// fromMarch turns a month into a year that begins in March, so that leap days
// come last, and the days before the month in that year.
func fromMarch(y, m int64) (year, days int64) {
	if m <= 2 {
		y, m = y-1, m+12
	}
	return y, (153*(m-3) + 2) / 5
}

// toJanuary is the reverse, given the day in the year that begins in March.
func toJanuary(year, rest int64) (y, m, d int64) {
	k := (5*rest + 2) / 153
	d = rest - (153*k+2)/5 + 1
	if m = k + 3; m > 12 {
		return year + 1, m - 12, d
	}
	return year, m, d
}

func before(y, m, d, y2, m2, d2 int64) bool {
	return y < y2 || y == y2 && (m < m2 || m == m2 && d < d2)
}

// floor is the quotient rounded down.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
