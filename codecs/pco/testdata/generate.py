"""Writes pcodec.json: files of the Python package pcodec, with every mode and
delta encoding, and the hash of the numbers that they hold.

    python generate.py > pcodec.json
"""

import base64
import hashlib
import json

import numpy as np
import pcodec
from pcodec import ChunkConfig, DeltaSpec, ModeSpec, PagingSpec, standalone

rng = np.random.default_rng(20)
cases = []


def case(name, a, mode=ModeSpec.classic(), delta=DeltaSpec.no_op(), level=8, page=1 << 18):
    config = ChunkConfig(
        compression_level=level,
        mode_spec=mode,
        delta_spec=delta,
        paging_spec=PagingSpec.equal_pages_up_to(page),
        enable_8_bit=a.dtype.itemsize == 1,
    )
    data = standalone.simple_compress(a, config)
    assert a.size == 0 or standalone.simple_decompress(data).tobytes() == a.tobytes()
    cases.append(
        {
            "name": name,
            "type": str(a.dtype),
            "size": a.nbytes,
            "sha256": hashlib.sha256(a.tobytes()).hexdigest(),
            "data": base64.b64encode(data).decode(),
        }
    )


ints = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
floats = ["float16", "float32", "float64"]
deltas = {
    "no": DeltaSpec.no_op(),
    "consecutive 1": DeltaSpec.try_consecutive(1),
    "consecutive 2": DeltaSpec.try_consecutive(2),
    "consecutive 7": DeltaSpec.try_consecutive(7),
    "lookback": DeltaSpec.try_lookback(),
}
n = 550  # conv1 fails to write if few numbers follow a multiple of 512
for t in ints + floats:
    wave = np.cumsum(np.cumsum(rng.integers(-3, 4, n))) // 5
    if t in ints:
        info = np.iinfo(t)
        span = int(info.max) - int(info.min)
        smooth = (wave % min(span, 1 << 14)).astype(t)
        wild = rng.integers(info.min, info.max, n, dtype=t, endpoint=True)
        wild[:4] = [info.min, info.max, 0, 1]
    else:
        smooth = (np.sin(wave / 40) * 100).astype(t)
        bits = rng.integers(0, 256, n * smooth.itemsize, dtype="u1")
        wild = np.frombuffer(bits.tobytes(), t).copy()
        wild[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(t).tiny / 4]
    for name, spec in deltas.items():
        case(f"{t} smooth, {name}", smooth, delta=spec)
    case(f"{t} wild", wild)
    case(f"{t} wild, consecutive 1", wild, delta=DeltaSpec.try_consecutive(1))
    case(f"{t} constant", np.full(300, 7, t))
    case(f"{t} empty", np.zeros(0, t))
    case(f"{t} one", smooth[:1], delta=DeltaSpec.try_consecutive(2))
    case(f"{t} pages", smooth, page=250)
    if smooth.itemsize <= 4:
        for order in 1, 2, 6, 32:
            case(f"{t} conv1 {order}", smooth, delta=DeltaSpec.try_conv1(order))
    few = rng.choice(wild[:20], n)
    case(f"{t} dictionary", few, ModeSpec.try_dict())
    case(f"{t} dictionary, lookback", few, ModeSpec.try_dict(), DeltaSpec.try_lookback())
    if t in ints:
        case(f"{t} mult", smooth // 11 * 11 + 3, ModeSpec.try_int_mult(11))
        case(f"{t} mult wild", wild, ModeSpec.try_int_mult(11), DeltaSpec.try_consecutive(1))
    else:
        tenths = (np.round(smooth * 10) / 10).astype(t)
        case(f"{t} mult", tenths, ModeSpec.try_float_mult(0.1))
        case(f"{t} mult, consecutive 1", tenths, ModeSpec.try_float_mult(0.1), DeltaSpec.try_consecutive(1))
        case(f"{t} mult, lookback", tenths, ModeSpec.try_float_mult(0.1), DeltaSpec.try_lookback())
        case(f"{t} mult wild", wild, ModeSpec.try_float_mult(0.1))
        case(f"{t} mult huge", (wave.astype(t) - 7) * 2.0, ModeSpec.try_float_mult(2.0))
        case(f"{t} quant", smooth, ModeSpec.try_float_quant(5))
        case(f"{t} quant wild", wild, ModeSpec.try_float_quant(5), DeltaSpec.try_consecutive(1))

many = np.cumsum(rng.integers(-40, 40, 6000)).astype("int32")
case("many", many, ModeSpec.auto(), DeltaSpec.auto())
case("many, level 12", many, ModeSpec.auto(), DeltaSpec.auto(), level=12)
case("many, lookback", np.tile(many[:1500], 4), delta=DeltaSpec.try_lookback())

print(json.dumps({"writer": "pcodec " + pcodec.__version__, "cases": cases}, indent=1))
