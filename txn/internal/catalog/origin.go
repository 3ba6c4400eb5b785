package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Origin says which process began a session. Parts that are not known are zero.
type Origin struct {
	Program string `json:"program,omitempty"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	User    string `json:"user,omitempty"`
}

const unknown = "unknown"

// Named returns the origin with "unknown" for what is not known.
func (o Origin) Named() Origin {
	return Origin{cmp.Or(o.Program, unknown), cmp.Or(o.Host, unknown), o.PID, cmp.Or(o.User, unknown)}
}

// String describes the process for people.
func (o Origin) String() string {
	if o == (Origin{}) {
		return unknown
	}
	n := o.Named()
	if o.PID == 0 {
		return fmt.Sprintf("%s of %s on %s", n.Program, n.User, n.Host)
	}
	return fmt.Sprintf("%s (process %d) of %s on %s", n.Program, o.PID, n.User, n.Host)
}

// withOrigin is the label of a record with the origin behind it. Earlier versions read all of it as the label.
func withOrigin(label string, by Origin) string {
	b, err := json.Marshal(by)
	if err != nil || by == (Origin{}) {
		return label
	}
	return label + "\x00" + string(b)
}

func cutOrigin(s string) (label string, by Origin) {
	i := strings.LastIndexByte(s, 0)
	if i < 0 || json.Unmarshal([]byte(s[i+1:]), &by) != nil {
		return s, Origin{}
	}
	return s[:i], by
}
