// Package compare finds the differences between two versions: by node, and by
// value within an array.
//
//	keys that differ ──▶ Nodes   "temp: 3 chunks changed, units: K -> C"
//	        └ of one array ──▶ Values  "temp [0 10 20]+[1 5 5]: 25 differ by 0.1 on average"
//
// It reads versions and writes nothing.
package compare
