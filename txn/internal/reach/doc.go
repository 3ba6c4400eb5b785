// Package reach finds which pages and payloads some versions reach. Garbage
// collection, transfers and check share it.
//
//	roots ──▶ Marks ──▶ page names (64 parts)      a page is read once
//	             │  ╲
//	   WorkList  │   ╲── LeafReader: leaves in the order of the index
//	             ▼
//	          Ranges: where the payloads are, joined, in bounded memory
//
//	gc        Marks: what is not marked is deleted, what is outside of Ranges freed
//	          Ranges.Alone: what only one holder keeps
//	transfer  Pages, Ranges, Payloads: what the destination lacks
//	check     WorkList, AddressSet: each page and payload once
//
// It reads pages by name through a tree, or is given their bytes. It deletes nothing.
package reach
