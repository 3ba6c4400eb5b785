package cf

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
)

var (
	// days and their unit, hours, minutes, seconds
	clockForm = regexp.MustCompile(`^([+-])?(?:(\d{1,9})\s*(?:d|D|days?)\s*,?\s*)?(\d{1,9}):(\d{1,2})(?::(\d{1,2}(?:\.\d{0,9})?))?$`)
	// a number and its unit
	spanForm = regexp.MustCompile(`^\s*([+-]?\d+(?:\.\d*)?)\s*([a-zA-Zµ]+)\s*,?\s*`)
)

var errSpan = errors.New("cf: not a span of time")

// parseSpan reads a span of time such as 6h, '1 day 12 hours' or 06:30:00, with the
// units of time that files use. It means the counts of decoded spans from first up to,
// but not including, end: the longest of a day, hour, minute, second or shorter unit that
// divides the span, as pandas has it. whole reports whether the span itself is the count
// first.
func (d *Decoder) parseSpan(text string) (first, end int64, whole bool, err error) {
	nanos, err := parseSpan(text)
	if err != nil {
		return 0, 0, false, err
	}
	res := d.resolution()
	if res == 0 {
		return 0, 0, false, fmt.Errorf("spans of %v: %w", d.out, errors.ErrUnsupported)
	}
	width := int64(1)
	for _, unit := range []int64{day, 3600e9, 60e9, 1e9, 1e6, 1e3} {
		if nanos%unit == 0 {
			width = unit
			break
		}
	}
	if nanos > math.MaxInt64-width {
		return 0, 0, false, fmt.Errorf("%w that fits %v: %q", errSpan, d.out, text)
	}
	ceil := func(n int64) int64 { return -floor(-n, res) }
	return ceil(nanos), ceil(nanos + width), nanos%res == 0, nil
}

// parseSpan returns a span in nanoseconds.
func parseSpan(text string) (int64, error) {
	fail := fmt.Errorf("%w, such as 6h or '1 day 06:00': %q", errSpan, text)
	total := new(big.Rat)
	add := func(number string, unit int64) bool {
		n, ok := new(big.Rat).SetString(strings.TrimSuffix(number, "."))
		if ok {
			total.Add(total, n.Mul(n, new(big.Rat).SetInt64(unit)))
		}
		return ok
	}
	rest := strings.TrimSpace(text)
	if p := clockForm.FindStringSubmatch(rest); p != nil {
		for i, unit := range []int64{day, 3600e9, 60e9, 1e9} {
			if n := p[i+2]; n != "" && !add(n, unit) {
				return 0, fail
			}
		}
		if p[1] == "-" {
			total.Neg(total)
		}
		rest = ""
	} else if rest == "" || len(rest) > 200 {
		return 0, fail
	}
	for rest != "" {
		p := spanForm.FindStringSubmatch(rest)
		if p == nil {
			return 0, fail
		}
		unit := spans[strings.ToLower(strings.Replace(p[2], "µ", "u", 1))]
		if unit == 0 || !add(p[1], unit) {
			return 0, fail
		}
		rest = rest[len(p[0]):]
	}
	f, _ := total.Float64()
	if math.Abs(f) >= 1<<63 {
		return 0, fmt.Errorf("%w of less than 292 years: %q", errSpan, text)
	}
	return new(big.Int).Quo(total.Num(), total.Denom()).Int64(), nil
}
