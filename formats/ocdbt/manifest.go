package ocdbt

import "github.com/zarrdb/zarrdb/formats"

// config is the configuration of a store (index.rst, "Manifest configuration").
type config struct {
	uuid      [16]byte
	numbered  bool
	maxInline uint64
	maxNode   uint64 // bytes of a node as tensorstore counts them; 0 for no limit
	arityLog2 uint8
}

const maxArityLog2 = 16

// manifest says where the generations of a store are.
type manifest struct {
	config
	// versions are the newest ones, ascending; none if the configuration stands alone.
	versions []generation
	// nodes hold the older ones, ascending.
	nodes []versionRef
}

// maxManifest bounds a manifest: its generations are at most 1<<maxArityLog2.
const maxManifest = 64 << 20

func decodeManifest(b []byte) (*manifest, error) {
	body, err := decodeFrame(magicManifest, b, maxManifest)
	if err != nil {
		return nil, err
	}
	c := &cursor{b: body}
	m := &manifest{}
	copy(m.uuid[:], c.bytes(16))
	kind := c.uvarint()
	m.maxInline = c.uvarint()
	m.maxNode = c.uvarint()
	m.arityLog2 = c.byte()
	method := c.uvarint()
	if method == 1 {
		c.bytes(4) // the level
	}
	switch {
	case c.err != nil:
		return nil, c.err
	case kind > 1:
		return nil, formats.Unsupported("OCDBT: manifest kind %d", kind)
	case method > 1:
		return nil, formats.Unsupported("OCDBT: compression method %d", method)
	case m.arityLog2 == 0 || m.arityLog2 > maxArityLog2:
		return nil, formats.Invalid("version_tree_arity_log2 is %d, not 1 to %d", m.arityLog2, maxArityLog2)
	case kind == 1:
		m.numbered = true
		return m, c.end()
	}
	files := decodeFiles(c, "", maxManifest)
	m.versions = decodeGenerations(c, files, m.arityLog2)
	m.nodes = decodeVersionRefs(c, files, 64/uint64(m.arityLog2), m.arityLog2, -1)
	if err := c.end(); err != nil {
		return nil, err
	}
	if n := len(m.nodes); n > 0 && m.nodes[n-1].last >= m.versions[0].number {
		return nil, formats.Invalid("generation %d is in the version tree and in the manifest", m.nodes[n-1].last)
	}
	return m, nil
}
