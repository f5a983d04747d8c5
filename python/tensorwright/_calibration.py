# SPDX-License-Identifier: Apache-2.0
"""Batches of a caller, as the library's calibrators ask for them."""

import numpy as np
import tensorrt as trt


class _Batches:
    """Hands batches to the library; what is wrong with one comes out of compile()."""

    def __init__(self, batches, cache, network, memory):
        super().__init__()
        self.batches, self.cache, self.memory, self.at, self.held, self.error = batches, cache, memory, 0, None, None
        self.types = {t.name: t for t in (network.get_input(i) for i in range(network.num_inputs))}

    def _batch(self, index):
        """Arrays by name; a batch without names is for the only input."""
        result = {}
        for name, value in self.batches[index].items():
            if name is None:
                if len(self.types) != 1:
                    raise ValueError(f"calibration: the model has {len(self.types)} inputs; batches must be dicts of their arrays")
                (name,) = self.types
            if name not in self.types:
                raise ValueError(f"calibration: no input is called {name!r} (inputs: {', '.join(self.types)})")
            wanted, array = tuple(self.types[name].shape), np.asarray(value)
            if len(wanted) != array.ndim or any(w not in (-1, n) for w, n in zip(wanted, array.shape)):
                raise ValueError(f"calibration: batch {index} of {name!r} is {list(array.shape)}, the model takes {list(wanted)}")
            result[name] = np.ascontiguousarray(array, trt.nptype(self.types[name].dtype))
        return result

    def shapes(self):
        return {n: a.shape for n, a in self._batch(0).items()} if self.batches else {}

    def get_batch_size(self):
        return max((a[0] for a in self.shapes().values() if a), default=1)

    def get_batch(self, names):
        try:
            if self.at == len(self.batches):
                return None
            arrays, self.at = self._batch(self.at), self.at + 1
            missing = [n for n in names if n not in arrays]
            if missing:
                raise ValueError(f"calibration: batch {self.at - 1} has no array for input {missing[0]!r}")
            if any(a.shape != self.shapes()[n] for n, a in arrays.items()):
                raise ValueError(f"calibration: batch {self.at - 1} is of another shape than batch 0")
            taken = {n: self.memory.take(arrays[n]) for n in names}
            self.held = taken
            return [taken[n][0] for n in names]
        except Exception as error:
            self.error = error
            return None

    def read_calibration_cache(self):
        return self.cache

    def write_calibration_cache(self, cache):
        pass


class _Entropy2(_Batches, trt.IInt8EntropyCalibrator2):
    pass


class _MinMax(_Batches, trt.IInt8MinMaxCalibrator):
    pass


ALGORITHMS = {"entropy2": _Entropy2, "minmax": _MinMax}


def calibrator(options, network, memory):
    calibration, algorithm = options["calibration"], options["algorithm"]
    if isinstance(calibration, list):
        return ALGORITHMS[algorithm](calibration, None, network, memory)
    with open(calibration, "rb") as file:
        cache = file.read()
    if algorithm is None:  # a cache says which one has written it
        algorithm = "minmax" if cache.split(b"\n", 1)[0].strip().endswith(b"-MinMaxCalibration") else "entropy2"
    return ALGORITHMS[algorithm]([], cache, network, memory)
