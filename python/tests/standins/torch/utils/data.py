"""A stand-in: workers are processes that get the pickled data set and lists of indices."""

import multiprocessing

import numpy as np

START = "fork"  # how workers are started; torch lets its user choose too


class Dataset:
    pass


def _start(dataset):
    global _dataset
    _dataset = dataset


def _fetch(indices):
    if hasattr(_dataset, "__getitems__"):
        return np.stack(_dataset.__getitems__(indices))
    return np.stack([_dataset[i] for i in indices])


class DataLoader:
    def __init__(self, dataset, batch_size=1, num_workers=0, shuffle=False, pin_memory=False):
        self.dataset, self.batch_size, self.workers, self.shuffle = dataset, batch_size, num_workers, shuffle

    def __iter__(self):
        order = np.arange(len(self.dataset))
        if self.shuffle:
            np.random.default_rng().shuffle(order)
        batches = [order[i : i + self.batch_size].tolist() for i in range(0, len(order), self.batch_size)]
        with multiprocessing.get_context(START).Pool(self.workers, _start, (self.dataset,)) as pool:
            yield from pool.imap(_fetch, batches)
