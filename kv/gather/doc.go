// Package gather reads many parts of files in few requests.
//
//	wanted    ▓▓ ▓▓▓  ▓▓▓                     ▓▓▓▓▓▓▓        of one file
//	read      ████████████                    ███████        gaps up to Gap,
//	                                                         together up to Most
//
// Runs of parts are read at the same time, as many as [Options] allow, and held
// in a bounded amount of memory: a run that would not fit waits for other runs
// to end. Each run is one request, whose answer also names the version of the
// file; no request precedes it.
package gather
