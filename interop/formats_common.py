"""What the scripts formats_NAME.py share: the program, comparisons, and counts."""
import argparse, os, pathlib, subprocess, sys, tempfile, traceback, warnings

import numpy as np

warnings.filterwarnings("ignore")  # of zarr-python, that others may not know a codec


class Program:
    """zarrdb, and a folder that a case may fill and that goes with it."""

    def __init__(self, bin):
        self.bin, self.tmp = os.path.abspath(bin), None

    def path(self, name):
        return str(pathlib.Path(self.tmp) / name)

    def execute(self, *args, stdin=None):
        """The standard output of a command. Any status but 0 is an error."""
        p = subprocess.run([*map(str, args)], input=stdin, capture_output=True)
        if p.returncode:
            raise RuntimeError(f"exit {p.returncode}: {' '.join(map(str, args))}: {p.stderr.decode()}")
        return p.stdout

    def run(self, *args):
        return self.execute(self.bin, *args)

    def read(self, target, like, *flags):
        """All values of an array that is expected to have this shape and data type."""
        got = self.run("read", target, "-o", "-", *flags)
        return np.frombuffer(got, like.dtype.newbyteorder("<")).reshape(like.shape)

    def check(self, target, want, what, tolerance=0, flags=()):
        same(want, self.read(target, want, *flags), what, tolerance)

    def link(self, source, *flags):
        """A new database of references to the source."""
        db = tempfile.mktemp(".zdb", dir=self.tmp)
        self.run("import", db, source, "--link", *flags)
        return db


def same(want, got, what, tolerance=0):
    """Compares shape and, with no tolerance, the bytes of all values: so NaN equals NaN."""
    want, got = np.asarray(want), np.asarray(got)
    if want.shape != got.shape:
        raise AssertionError(f"{what}: shape {got.shape}, not {want.shape}")
    if tolerance:
        worst = np.abs(want.astype("f8") - got.astype("f8")).max(initial=0)
        if worst > tolerance:
            raise AssertionError(f"{what}: values differ by up to {worst}")
        return
    little = want.dtype.newbyteorder("<")
    if got.dtype.newbyteorder("<") != little or want.astype(little).tobytes() != got.astype(little).tobytes():
        raise AssertionError(f"{what}: other values: {got!r}, not {want!r}")


def main(doc, cases):
    """Runs cases, of (format, name, function, arguments…), each in a folder of its own.

    A function gets the program, then its arguments. Prints what fails to the standard
    error and, last, a line for each format. The exit status is 0 if nothing failed and
    something ran.
    """
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True, help="the program zarrdb")
    p.add_argument("-k", default="", metavar="SUBSTRING", help="only cases with this in their name")
    a = p.parse_args()
    program, counts = Program(a.bin), {}
    for format, name, fn, *args in cases:
        if a.k not in f"{format} {name}":
            continue
        count = counts.setdefault(format, [0, 0])
        with tempfile.TemporaryDirectory() as tmp:
            program.tmp = tmp
            os.environ["XDG_CONFIG_HOME"] = tmp  # where grants are remembered
            try:
                fn(program, *args)
                count[0] += 1
            except Exception:
                count[1] += 1
                print(f"FAIL {format} {name}", file=sys.stderr)
                traceback.print_exc()
    for format, (passed, failed) in counts.items():
        print(f"{format}: {passed} passed, {failed} failed", flush=True)
    sys.exit(any(failed for _, failed in counts.values()) or not counts)
