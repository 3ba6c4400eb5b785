package codecs

// builtin is the one list of codecs that Default knows.
func builtin() []Entry {
	return []Entry{
		{V3: []string{"bytes", "endian"}, Kind: ArrayToBytes, Parse: parseBytes},
		{V3: []string{"transpose"}, Kind: ArrayToArray, Parse: parseTranspose},
		{V2: "crc32c", V3: []string{"crc32c", "numcodecs.crc32c"}, Kind: BytesToBytes, Parse: parseCRC32C},
	}
}
