// Package bytestest makes input for the tests of encoders of bytes.
//
//	Mixed    │ run │ noise │ copy of earlier bytes │ …
//	Guarded  │ bytes of the test │ page without access        │
//
// Only tests import it.
package bytestest
