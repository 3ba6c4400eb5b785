package kv

import (
	"errors"
	"testing"
	"time"
)

func TestStampMeets(t *testing.T) {
	at := time.Unix(1_700_000_000, 5)
	full := Stamp{ETag: `"abc"`, Modified: at}
	for _, c := range []struct {
		stamp     Stamp
		condition string
		ok        bool
	}{
		{full, "", true},
		{Stamp{}, "", true},
		{full, IfMatch("abc"), true},
		{full, IfMatch(`"abc"`), true},
		{Stamp{ETag: "abc"}, IfMatch(`"abc"`), true},
		{full, IfMatch("abcd"), false},
		{full, IfMatch(`W/"abc"`), false},
		{Stamp{Modified: at}, IfMatch("abc"), false},
		{full, IfUnmodifiedSince(at), false}, // which is cut to seconds
		{full, IfUnmodifiedSince(at.Add(time.Second)), true},
		{Stamp{Modified: time.Unix(7, 0)}, IfUnmodifiedSince(time.Unix(7, 0)), true},
		{Stamp{Modified: time.Unix(8, 0)}, IfUnmodifiedSince(time.Unix(7, 0)), false},
		{Stamp{ETag: `"abc"`}, IfUnmodifiedSince(at), false},
		{Stamp{}, "etag:abc size:3", true}, // no condition
		{Stamp{}, "if-unmodified-since:soon", true},
	} {
		if err := c.stamp.Meets(c.condition); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrChanged) {
			t.Errorf("%+v, %q: %v", c.stamp, c.condition, err)
		}
	}
}
