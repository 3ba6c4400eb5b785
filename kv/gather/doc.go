// Package gather reads many parts of files in few requests.
//
//	wanted    ▓▓ ▓▓▓  ▓▓▓                     ▓▓▓▓▓▓▓        of one file
//	read      ████████████                    ███████        gaps up to Gap,
//	                                                         together up to Most
//
// Runs of parts are read at the same time, as many as [Options] allow, and held
// in a bounded amount of memory: a run that would not fit waits for others to
// end. Each run is one request, which also says which version of the file it is
// of; nothing is asked before.
package gather
