"""What other implementations are known not to do. Each gap has a reason; one that
nothing stands behind any more fails the comparison."""
import dataclasses, re


@dataclasses.dataclass
class Gap:
    impl: str  # a regular expression that its name begins with
    error: str  # a regular expression that its message begins with
    reason: str
    array: str = ""  # a regular expression that is found in what the array is called
    direction: str = ""  # reads_ours, we_read, "to v2" or "to v3"; all if empty
    seen: int = 0


GAPS = [
    Gap("zarr(s|-python)", "UnknownCodecError: codec not available: ''pcodec''", "needs another package"),
    Gap("zarr(s|-python)", "ValueError: No Zarr data type found that matches", "data types that zarr-python does not have"),
    Gap("zarr-python", "TypeError: unhashable type: 'writeable void-scalar'", "shards of opaque elements", "shard"),
    Gap("zarr-python", "not even itself: other values", "transposed text is stored as it happens to lie in memory", "(string|bytes)/zstd/.*transpose", "we_read"),
    Gap("zarr-python", "other values", "fields are little-endian whatever the bytes codec says", "structured/zstd/big-endian"),
    Gap("zarr-python", "KeyError: '>f", "encoding of big-endian floats", "bitround", "we_read"),

    Gap("zarrdb", ".*cannot be converted to Zarr v", "data types and values that the other format has no form for"),
    Gap("zarr-python 2", "MetadataError: error decoding metadata", "data types that zarr-python does not have", "v3/(bfloat16|float8|u?int[24])", "to v2"),
    Gap("zarr-python 3", "ValueError: Invalid endianness: None", "elements wider than the array's data type", "[|][iu]1/astype", "to v3"),

    Gap("zarrs", "UnsupportedMetadataError:", "codecs that the pipeline has not"),
    Gap("zarrs", "UnsupportedDataTypeError:", "data types that the pipeline has not"),
    Gap("zarrs", "RuntimeError: Non-native byte order not supported", "big-endian v2"),
    Gap("zarrs", "ValueError: input array must be a C contiguous array", "Fortran order"),
    Gap("zarrs", "RuntimeError: float16 / <f2 does not support the FixedScaleOffset codec", "float16"),
    Gap("zarrs|zarrita", "other values", "the bits of a NaN as fill value", "fill 0x7fc00001"),
    Gap("zarrs", "other values", "the parts of big-endian complex numbers come out swapped", "complex(64|128)/zstd/big-endian|v2/>c(8|16)/"),

    Gap("tensorstore", '.*Error parsing object member "id": "(lz4|lzma|pcodec|shuffle|adler32|crc32|fletcher32|jenkins_lookup3)" is not registered', "compressors it has not"),
    Gap("tensorstore", ".*filters are not supported", "v2 filters"),
    Gap("tensorstore", '.*Unsupported zarr dtype: ', "v2 data types it has not"),
    Gap("tensorstore", '.*Error parsing object member "data_type": ', "v3 data types it has not"),
    Gap("tensorstore", '.*Error parsing object member "codecs": .*"numcodecs', "codecs it has not"),
    Gap("tensorstore", '.*Must specify a "field"', "opens one field at a time"),
    Gap("tensorstore", '.*Error parsing object member "dtype": Error parsing value at', "fields of nested types and text"),
    Gap("tensorstore", '.*Expected base64-encoded string for raw', "fill values of raw types as numbers", "r16"),

    Gap("zarrita", "UnknownCodecError: Unknown codec: numcodecs", "codecs it has not"),
    Gap("zarrita", "UnknownCodecError: Unknown codec: sharding_indexed", "nested shards", "shard of shards"),
    Gap("zarrita", "RangeError: The value of \"size\" is out of range", "it looks for the index at the end", "index first"),
    Gap("zarrita", "InvalidMetadataError: (Unknown|Unsupported|Invalid dtype)", "data types it has not, float16 for want of Float16Array"),
    Gap("zarrita", "TypeError: d(ata)?[tT]ype.match is not a function", "data types with a configuration"),
    Gap("zarrita", "Error: Input contains an empty iterator", "arrays without elements", "empty"),
    Gap("zarrita", "(Error: elements of type|CodecPipelineError: Failed to decode chunk via codec \"transpose\")", "objects", "json2|vlen-array"),
    Gap("zarrita", "other values", "codecs it has not, in arrays without dimensions", "vlen-bytes.*0-d|msgpack2.*0-d"),
    Gap("zarrita", "Error: Shuffle codec requires a fixed-size dtype", "shuffled text", "string/numcodecs.shuffle"),
]


def covers(impl, direction, array, error):
    """Whether a gap explains an error."""
    for g in GAPS:
        if re.match(g.impl, impl) and g.direction in ("", direction) and (re.match(g.error, error) or re.match("not even itself: " + g.error, error)) and re.search(g.array, array):
            g.seen += 1
            return True
    return False
