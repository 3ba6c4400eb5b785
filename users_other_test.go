//go:build !unix

package zarrdb_test

func look(string) {}
