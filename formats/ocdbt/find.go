package ocdbt

import (
	"context"
	"fmt"
	"iter"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/formats"
)

// wanted says which generation is looked for: the one with a number, or the newest one
// at a time.
type wanted struct {
	number uint64 // 0 for a time
	time   uint64
}

// parseVersion reads a version as URLs spell it: v12, or a time of RFC 3339.
func parseVersion(s string) (wanted, error) {
	if digits, ok := strings.CutPrefix(s, "v"); ok {
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil && n > 0 {
			return wanted{number: n}, nil
		}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return wanted{}, fmt.Errorf("%w: %s is not of OCDBT: want v and a number, or a time such as 2025-01-01T01:23:45.678Z", formats.ErrNoVersion, quote(s))
	}
	switch year := t.Year(); { // the range of 64 bits of nanoseconds
	case year < 1970:
		return wanted{}, nil
	case year > 2261:
		return wanted{time: 1<<63 - 1}, nil
	}
	return wanted{time: uint64(t.UnixNano())}, nil
}

// found is a generation and the number of the one before it, 0 for none.
type found struct {
	generation
	before uint64
}

// find returns the generation that a version names; "" is the newest.
func (s *store) find(ctx context.Context, version string) (found, error) {
	if version == "" {
		return s.newest(), nil
	}
	w, err := parseVersion(version)
	if err != nil {
		return found{}, err
	}
	g, ok, err := s.search(ctx, w, s.versions, s.manifest.nodes)
	switch {
	case err != nil:
		return found{}, err
	case ok:
		return g, nil
	case len(s.versions) == 0:
		return found{}, fmt.Errorf("%w: %s: the store has no generations", formats.ErrNoVersion, version)
	case w.number > 0:
		return found{}, fmt.Errorf("%w: %s: the newest generation is v%d", formats.ErrNoVersion, version, s.newest().number)
	}
	return found{}, fmt.Errorf("%w: %s: no generation is that old", formats.ErrNoVersion, version)
}

// newest is the zero generation for a store without any.
func (s *store) newest() found {
	if len(s.versions) == 0 {
		return found{generation: generation{root: missingRoot}}
	}
	return s.at(len(s.versions)-1, s.versions, s.manifest.nodes, 0)
}

// at returns one of some generations. nodes come before them, and older, if not 0, is
// the newest generation before all of these.
func (s *store) at(i int, versions []generation, nodes []versionRef, older uint64) found {
	switch {
	case i > 0:
		older = versions[i-1].number
	case len(nodes) > 0:
		older = nodes[len(nodes)-1].last
	}
	return found{versions[i], older}
}

// search looks for a generation in a manifest: versions, and the nodes before them.
func (s *store) search(ctx context.Context, w wanted, versions []generation, nodes []versionRef) (found, bool, error) {
	older := uint64(0) // the generation before all versions and nodes
	for {
		// The last generation up to the wanted one.
		i := sort.Search(len(versions), func(i int) bool {
			if w.number > 0 {
				return versions[i].number > w.number
			}
			return versions[i].time > w.time
		}) - 1
		if i >= 0 {
			return s.at(i, versions, nodes, older), w.number == 0 || versions[i].number == w.number, nil
		}
		// The first node whose newest generation is not before it, or the last one whose
		// oldest generation is not after it.
		if w.number > 0 {
			i = sort.Search(len(nodes), func(i int) bool { return nodes[i].last >= w.number })
		} else {
			i = sort.Search(len(nodes), func(i int) bool { return nodes[i].time > w.time }) - 1
		}
		if i < 0 || i == len(nodes) {
			return found{}, false, nil
		}
		if i > 0 {
			older = nodes[i-1].last
		}
		node, err := s.versionNode(ctx, nodes[i])
		if err != nil {
			return found{}, false, err
		}
		versions, nodes = node.versions, node.nodes
	}
}

// history yields the generations up to a number, newest first.
func (s *store) history(ctx context.Context, newest uint64) iter.Seq2[generation, error] {
	return func(yield func(generation, error) bool) {
		if walk(s.versions, newest, yield) {
			s.walkNodes(ctx, s.manifest.nodes, newest, yield)
		}
	}
}

func walk(versions []generation, newest uint64, yield func(generation, error) bool) bool {
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].number <= newest && !yield(versions[i], nil) {
			return false
		}
	}
	return true
}

// walkNodes enters nodes of the version tree, whose height falls with each step.
func (s *store) walkNodes(ctx context.Context, nodes []versionRef, newest uint64, yield func(generation, error) bool) bool {
	for i := len(nodes) - 1; i >= 0; i-- {
		if i > 0 && nodes[i-1].last >= newest {
			continue // the whole node is newer
		}
		node, err := s.versionNode(ctx, nodes[i])
		if err != nil {
			yield(generation{}, err)
			return false
		}
		if !walk(node.versions, newest, yield) || !s.walkNodes(ctx, node.nodes, newest, yield) {
			return false
		}
	}
	return true
}
