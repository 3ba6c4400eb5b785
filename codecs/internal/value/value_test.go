package value

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAbsent(t *testing.T) {
	for text, want := range map[string]bool{"": true, " \n": true, "null": true, " null\n": true, "0": false, `"null"`: false, "{}": false} {
		if got := Absent(json.RawMessage(text)); got != want {
			t.Errorf("Absent(%q) is %v", text, got)
		}
	}
}

func TestClip(t *testing.T) {
	long := strings.Repeat("1", 41)
	for text, want := range map[string]string{"": "", "[1]": "[1]", long[:40]: long[:40], long: long[:40] + "…"} {
		if got := Clip(json.RawMessage(text)); got != want {
			t.Errorf("Clip(%q) is %q", text, got)
		}
	}
}

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape []int
		want  int64
	}{
		{nil, 1}, {[]int{3, 4}, 12}, {[]int{3, 0}, 0}, {[]int{1 << 30, 4}, 1 << 32}, {[]int{-1}, -1}, {[]int{2, -3}, -1},
		{[]int{1 << 30, 1 << 30, 1 << 30}, -1}, {[]int{1 << 30, 1 << 30, 0}, -1},
	} {
		if got := Elements(c.shape); got != c.want {
			t.Errorf("Elements(%v) is %d, want %d", c.shape, got, c.want)
		}
	}
}
