"""Writes dumps.json: JSON values and how Python prints them again.

    python generate.py      needs ujson; its version is recorded in the file
"""
import json
import random
import string

import ujson

HAND = [
    "{}", '{"a":1}', '{ "a" : [ 1 , 2 ] , "b" : { } , "c":[] }', '{"a":"b/c","\u00e9":"\u2028\U0001F600\x7f\u0080"}', '{"a":"\\u00e9\\ud83d\\ude00\\/\\\\\\"\\b\\f\\n\\r\\t\\u0000\\u001f"}',
    '{"a":null,"b":true,"c":false}', '{"a":NaN,"b":Infinity,"c":-Infinity}', '{"a":-0,"b":0,"c":-0.0,"d":0.0,"e":1.0,"f":1E5,"g":1e400,"h":-1e400,"i":1e-400}',
    '{"a":123456789012345678901234567890,"b":18446744073709551615,"c":-9223372036854775808}',
    '{"zarr_format":2,"shape":[5,6,8],"chunks":[1,3,4],"dtype":"<f4","fill_value":-999.0,"order":"C","filters":[{"id":"shuffle","elementsize":4}],"compressor":null}',
    '{"units":"m s-1","note":"days since 2000-01-01 00:00","path":"a/b","scale_factor":0.01,"x":9.969209968386869e+36}',
]


def floats(r):
    for _ in range(300):
        f = r.choice([r.uniform(-1, 1) * 10.0 ** r.randint(-30, 30), r.random(), float(r.randint(-10**6, 10**6)), r.randint(1, 99) * 10.0 ** r.randint(-9, 20)])
        yield r.choice([repr(f), "%.17g" % f, "%e" % f, "%g" % f])


def value(r, depth):
    k = r.randint(0, 6 if depth else 4)
    if k == 0:
        return r.choice([None, True, False])
    if k == 1:
        return r.randint(-(10 ** r.randint(1, 18)), 10 ** r.randint(1, 18))
    if k == 2:
        return r.uniform(-1, 1) * 10.0 ** r.randint(-8, 18)
    if k in (3, 4):
        return "".join(r.choice(string.printable + "/\\\"\u00e9\u4e2d\U0001F680\x7f") for _ in range(r.randint(0, 8)))
    if k == 5:
        return [value(r, depth - 1) for _ in range(r.randint(0, 4))]
    return {value(r, 0) if r.random() < 0 else "k%d/%s" % (i, r.choice(["", "\u00fc", "x"])): value(r, depth - 1) for i in range(r.randint(0, 4))}


def main():
    r = random.Random(1)
    texts = HAND + ['{"f":%s}' % f for f in floats(r)]
    texts += [json.dumps({"v": value(r, 3)}, ensure_ascii=r.random() < 0.5, indent=r.choice([None, 1])) for _ in range(200)]
    with open("dumps.json", "w") as fo:
        json.dump({"writer": f"ujson {ujson.__version__} and Python's json",
                   "values": [[t, ujson.dumps(ujson.loads(t)), json.dumps(json.loads(t))] for t in texts]}, fo, indent=0)
        fo.write("\n")


main()
