package serve

import (
	"errors"
	"fmt"
	"path"
)

// ErrDenied means that the principal has no permission for the request.
var ErrDenied = errors.New("serve: denied")

// Principal is the sender of a request, with its permissions. Transports
// authenticate it. A Principal is immutable once it is in use.
type Principal struct {
	// Name is recorded in the audit log, and as the author of commits that name
	// none.
	Name string
	// Write lists patterns of the branches that it may write to, in the syntax
	// of [path.Match], where "*" alone stands for every branch. Without patterns
	// it is a reader.
	Write []string
	// Admin may write to every branch, make databases, move and delete refs, collect, repair and
	// transfer: it may send every request.
	Admin bool
}

// Owner is the user whose process holds the databases: it may do everything.
func Owner(name string) *Principal { return &Principal{Name: name, Admin: true} }

// MayWrite returns nil, or an ErrDenied that names the branch.
func (p *Principal) MayWrite(branch string) error {
	if p.Admin {
		return nil
	}
	for _, pattern := range p.Write {
		if ok, err := path.Match(pattern, branch); pattern == "*" || ok && err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %s may not write to branch %s", ErrDenied, p.Name, branch)
}

// MayAdminister returns nil, or an ErrDenied that names the request.
func (p *Principal) MayAdminister(what string) error {
	if p.Admin {
		return nil
	}
	return fmt.Errorf("%w: %s may not %s", ErrDenied, p.Name, what)
}
