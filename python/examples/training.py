"""Random reads in eight workers, with any way in which they are started."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import zarrdb


class Patches(Dataset):
    def __init__(self, path, rev, var, size=128):
        self.snap = zarrdb.open(path).at(rev)
        self.a = self.snap.array(var)  # pickles by its commit, and works on after fork
        self.size = size
        self.n = self.a.shape[0]

    def __len__(self):
        return self.n * 64

    def selection(self, i):
        r = np.random.default_rng(i)
        y, x = r.integers(0, np.array(self.a.shape[1:]) - self.size)
        return (i % self.n, slice(y, y + self.size), slice(x, x + self.size))

    def __getitem__(self, i):
        out = np.empty((self.size, self.size), self.a.dtype)
        self.a.read(self.selection(i), out=out)  # decoded into this memory, with a cache for each process
        return torch.from_numpy(out)

    def __getitems__(self, indices):  # one request for a batch
        return list(torch.from_numpy(self.a.read_many([self.selection(i) for i in indices])))


def main(step, epochs=10, **options):
    ds = Patches("era5.zdb", "v1.0", "t2m", **options)
    print("training on", ds.snap.commit.id)  # log it with the run
    loader = DataLoader(ds, batch_size=64, num_workers=8, shuffle=True)
    for _ in range(epochs):
        for batch in loader:
            step(batch)


if __name__ == "__main__":
    main(lambda batch: print(batch.mean(), file=sys.stderr))
