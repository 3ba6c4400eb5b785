package picture

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tick is a label at a place along an axis.
type Tick struct {
	// At is the place in elements, from the edge of the first: 0.5 is the middle of it.
	At float64 `json:"at"`
	// Value is the number of the label there, the index without numbers.
	Value float64 `json:"value"`
	Text  string  `json:"text"`
}

// Numbers reports whether labels are finite numbers that only ascend or descend.
func (x *Axis) Numbers() bool {
	if x.Labels == nil || x.Labels.Order() == 0 || x.Len < 1 {
		return false
	}
	a, b := x.Labels.Number(0), x.Labels.Number(x.Len-1)
	return !math.IsInf(b-a, 0) && a-a == 0 && b-b == 0
}

// Ticks are at most so many labels of the elements first to last, less one: at round values of
// numbers, at the beginnings of years, months, days or hours of times, and else at round indices.
func (x *Axis) Ticks(first, last int64, most int) (out []Tick) {
	first, last = max(first, 0), min(last, x.Len)
	if most < 1 || last <= first {
		return nil
	}
	last--
	switch {
	case last == first:
	case x.Labels != nil && x.Labels.Times() && x.Labels.Order() != 0:
		out = x.timeTicks(first, last, most)
	case x.Numbers():
		a, b := x.Labels.Number(first), x.Labels.Number(last)
		values := rounds(min(a, b), max(a, b), 0, most)
		if x.degrees() && len(values) > 1 && values[1]-values[0] > 10 { // parts of a circle
			values = multiples(min(a, b), max(a, b), most, 15, 30, 45, 60, 90, 180)
		}
		stored := values
		if l, ok := x.Labels.(rolled); ok {
			stored = l.stored(values)
		}
		for i, text := range tickTexts(stored) {
			if x.degrees() {
				text += "°"
			}
			out = append(out, Tick{x.place(values[i]), values[i], text})
		}
		if x.Labels.Order() < 0 { // a drawing of labels goes from the first element on
			slices.Reverse(out)
		}
	}
	if len(out) > 1 || len(out) == 1 && most < 3 {
		return out
	}
	out = nil
	for _, v := range append(rounds(float64(first), float64(last), 1, most), float64(first)) {
		if i := int64(v); len(out) == 0 || i > int64(out[len(out)-1].At) {
			value := float64(i)
			if x.Numbers() {
				value = x.Labels.Number(i)
			}
			out = append(out, Tick{float64(i) + 0.5, value, x.Label(i)})
		}
	}
	return out
}

// timeParts are the ends of the parts of a time in its text, behind the year: 01-31T23:59:59.
var timeParts = []struct {
	end   int // of the part, from the end of the year
	every []int
}{
	{0, []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000}},
	{3, []int{1, 2, 3, 6}},
	{6, []int{1, 2, 5, 10, 15}},
	{9, []int{1, 2, 3, 6, 12}},
	{12, []int{1, 2, 5, 10, 30}},
	{15, []int{1, 2, 5, 10, 30}},
}

var months = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// timeTicks are at the first elements of years, months, days or parts of days. They read the
// texts of labels, which are right in every calendar, and only some of them.
func (x *Axis) timeTicks(first, last int64, most int) []Tick {
	text := func(i int64) (year, whole string) {
		t := x.Labels.Text(i)
		end := strings.IndexByte(t[min(1, len(t)):], '-') + 1
		if end == 0 || len(t) < end+6 {
			return "", "" // missing, or beyond what the calendar counts
		}
		return t[:end], t
	}
	if a, _ := text(first); a == "" {
		return nil
	}
	if b, _ := text(last); b == "" {
		return nil
	}
	var few []Tick
	for level, part := range timeParts {
		prefix := func(i int64) string {
			year, whole := text(i)
			return whole[:min(len(year)+part.end, len(whole))]
		}
		bound := 60 * most
		if level == 0 {
			bound = 100_000
		}
		var at []int64 // the first element of each part
		var split func(lo, hi int64, a, b string) bool
		split = func(lo, hi int64, a, b string) bool {
			switch {
			case a == b:
				return true
			case hi-lo == 1:
				at = append(at, hi)
				return len(at) <= bound
			}
			mid := lo + (hi-lo)/2
			m := prefix(mid)
			return split(lo, mid, a, m) && split(mid, hi, m, b)
		}
		if first == 0 || prefix(first-1) != prefix(first) {
			at = append(at, first)
		}
		if !split(first, last, prefix(first), prefix(last)) {
			continue
		}
		for _, every := range part.every {
			var out []Tick
			for _, i := range at {
				p := prefix(i)
				n, _ := strconv.Atoi(strings.TrimPrefix(p[max(len(p)-2, 0):], "-"))
				if level == 0 {
					n, _ = strconv.Atoi(p)
				}
				if level == 1 || level == 2 { // they count from 1; the last days of a month are near the next
					n--
				}
				if n%every != 0 || level == 2 && every > 1 && n > 30-every {
					continue
				}
				out = append(out, Tick{float64(i) + 0.5, x.Labels.Number(i), timeTick(p, level)})
			}
			if len(out) > most {
				continue
			}
			if len(out) > 2 {
				return out
			}
			if len(out) > len(few) {
				few = out
			}
			break
		}
	}
	return few
}

// timeTick is the text of a tick at a part of a time.
func timeTick(prefix string, level int) string {
	switch level {
	case 0:
		return trimYear(prefix)
	case 1:
		i := strings.LastIndexByte(prefix, '-')
		if m, _ := strconv.Atoi(prefix[i+1:]); m >= 1 && m <= 12 {
			return months[m-1] + " " + trimYear(prefix[:i])
		}
		return prefix
	case 2:
		return prefix
	case 3:
		prefix += ":00"
	}
	return TimeText(strings.TrimSuffix(prefix, "T00:00"))
}

// trimYear is a year without zeros before it.
func trimYear(text string) string {
	if n, err := strconv.Atoi(text); err == nil {
		return strconv.Itoa(n)
	}
	return text
}
