// Package value judges JSON values of codec configurations.
//
//	"delta_spec": null   ─▶ Absent
//	"shape": [3, -1]     ─▶ Elements: -1
//	"shape": {"a": … }   ─▶ Clip: as much of it as an error text quotes
package value
