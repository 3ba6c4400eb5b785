"""Writes what numcodecs makes of numbers of many types: python generate.py"""
import json, warnings
import numcodecs, numpy as np

warnings.simplefilter("ignore")
ints = [0, 1, 2, 3, 5, 7, 100, 101, 99, 3, 4, 120, 127, 126]
wide = ints + [-1, -5, -128, 127]
floats = [0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 3.5, 1e-3, 123.456, -77.7, 1000.25, 65504.0]
odd = floats + [1e-7, 6e-8, 1e5, -1e6, float("inf"), float("-inf")]
special = [0.0, 1.0, float("nan"), float("inf"), -float("inf"), 3.14159]


def values(dtype):
    k = np.dtype(dtype).kind
    if k == "f":
        return np.array(floats, dtype)
    if k == "i":
        return np.array(wide, dtype)
    return np.array(ints, dtype)


cases = []


def add(codec, data):
    enc = codec.encode(data)
    dec = codec.decode(enc)
    cases.append({
        "filter": codec.get_config(), "dtype": data.dtype.str,
        "data": data.tobytes().hex(), "encoded": np.asarray(enc).tobytes().hex(), "decoded": np.asarray(dec).tobytes().hex(),
    })


number = ["|i1", "<i2", ">i2", "<i4", ">i8", "<i8", "|u1", "<u2", ">u4", "<u8", "<f2", ">f4", "<f4", "<f8", ">f8"]
for t in number:
    add(numcodecs.Delta(t), values(t))
    for u in number:
        a, b = np.dtype(t).kind, np.dtype(u).kind
        data = values(t)
        if b != "f" and a == "f":
            data = np.array([0, 1.5, 2.7, 100.9, 99.1] + ([-1.5, -100.9] if b == "i" else []), t)
        add(numcodecs.AsType(u, t), data)
        # Signed and uint64 together become float64 in numpy, which then cannot
        # be undone.
        if a == b or (a in "iu" and b in "iu" and not (a == "i" and u == "<u8")):
            add(numcodecs.Delta(t, u), values(t))
        if a == "f" and b == "i":
            add(numcodecs.Delta(t, u), np.array([1, 2.5, 4, 9.75, 3.5], t))
for t in ["<f2", "<f4", ">f4", "<f8"]:
    for u in ["|u1", "<i2", ">i4", "<f4", t]:
        for offset, scale in [(0, 1), (-60, 10), (1.5, 0.25), (2, 3.7)]:
            data = np.array([0, 0.05, 1, 2.5, 3.14159, 7.77, 10.1, 20.02], t)
            add(numcodecs.FixedScaleOffset(offset, scale, t, u), data)
for t in ["<i2", "<i4", ">i8", "<u2"]:
    for offset, scale in [(0, 1), (100, 1), (3, 2), (1.5, 0.5), (10, 0.1), (2.5, 3)]:
        for u in ["<i2", "<i4", "<f4"]:
            add(numcodecs.FixedScaleOffset(offset, scale, t, u), np.array([1000, 1001, 1999, 5003, 7], t))
for t in ["<f2", "<f4", ">f4", "<f8"]:
    for digits in [0, 1, 2, 3, 5, -1]:
        add(numcodecs.Quantize(digits, t), values(t))
    add(numcodecs.Quantize(2, t, "<f4"), values(t))
    for keep in [] if t[0] == ">" else [0, 1, 3, 7, 10]:
        add(numcodecs.BitRound(keep), np.array(floats + ([] if t == "<f2" else [1e-30, 1e30]) + [float("inf")], t))
add(numcodecs.PackBits(), np.array([1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1], bool))
add(numcodecs.PackBits(), np.ones(16, bool))
add(numcodecs.Categorize(["b", "a", "a"], "<U2", "<u2"), np.array(["a", "b", "", "c", "ab"], "<U2"))
# A data type that is not that of the array.
add(numcodecs.Delta("<i4"), np.array(floats, "<f4"))
add(numcodecs.Delta("<u2"), np.array(floats, ">f8"))
add(numcodecs.Delta(">i4"), np.array(wide, "<i4"))
for codec in [numcodecs.Shuffle(4), numcodecs.Fletcher32(), numcodecs.JenkinsLookup3(), numcodecs.JenkinsLookup3(77), numcodecs.CRC32(),
              numcodecs.Adler32("end"), numcodecs.Base64(), numcodecs.LZ4(), numcodecs.LZ4(30)]:
    for n in [1, 3, 13, 400]:
        add(codec, np.arange(n, dtype="<i4") ** 2)
with open("numcodecs.json", "w") as f:
    f.write('{"writer": "numcodecs %s, numpy %s", "cases": [\n' % (numcodecs.__version__, np.__version__))
    f.write(",\n".join(json.dumps(c) for c in cases))
    f.write("\n]}\n")
print(len(cases))
