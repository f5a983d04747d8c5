# SPDX-License-Identifier: Apache-2.0
"""Every override of the interfaces of 8.5, called as the library calls it (probe.cpp), and what becomes of what it gives."""

import sys

import numpy as np
import pytest
import tensorrt as trt

import callback_probe as probe


@pytest.fixture
def raised():
    found, before = [], sys.unraisablehook
    sys.unraisablehook = lambda report: found.append((report.exc_type, report.object))
    yield found
    sys.unraisablehook = before


class Allocator(trt.IGpuAllocator):
    def __init__(self):
        trt.IGpuAllocator.__init__(self)
        self.calls = []

    def allocate(self, size, alignment, flags):
        self.calls.append(("allocate", size, alignment, flags))
        return 0x1000

    def reallocate(self, address, alignment, new_size):
        self.calls.append(("reallocate", address, alignment, new_size))
        return 0x2000

    def free(self, memory):
        self.calls.append(("free", memory))

    def deallocate(self, memory):
        self.calls.append(("deallocate", memory))
        return True


def test_allocator():
    allocator = Allocator()
    assert probe.allocator(allocator, 100, 256) == [0x1000, 0x2000, True]
    assert allocator.calls == [
        ("allocate", 100, 256, 1),
        ("reallocate", 0x1000, 256, 200),
        ("deallocate", 0x1000),
        ("free", 0x1000),
    ]


def test_allocator_with_less(capfd):
    """reallocate() is optional; without deallocate() nothing is freed in its place."""

    class Less(trt.IGpuAllocator):
        def __init__(self):
            trt.IGpuAllocator.__init__(self)
            self.freed = 0

        def allocate(self, size, alignment, flags):
            return None

        def free(self, memory):
            self.freed += 1

    less = Less()
    assert probe.allocator(less, 100, 256) == [0, 0, False]
    assert less.freed == 1
    err = capfd.readouterr().err
    assert "Less does not define deallocate()" in err and "reallocate" not in err


def test_allocator_that_raises(raised):
    class Raises(Allocator):
        def allocate(self, size, alignment, flags):
            raise MemoryError("no more")

        def reallocate(self, address, alignment, new_size):
            return 2.5

        def deallocate(self, memory):
            return "yes"

        def free(self, memory):
            del self.nothing

    assert probe.allocator(Raises(), 1, 1) == [0, 0, False]
    assert (MemoryError, "allocate") in raised and (AttributeError, "free") in raised


class Calibrator:
    """What all kinds share; the batches are ints, NumPy integers and objects with __int__."""

    batches = [[1, 2], [np.uint64(2**63), type("Memory", (), {"__int__": lambda self: 4})()], []]

    def get_batch_size(self):
        return 8

    def get_batch(self, names):
        self.names = names
        self.count = getattr(self, "count", -1) + 1
        return self.batches[self.count]

    def read_calibration_cache(self):
        return bytearray(b"cache")

    def write_calibration_cache(self, cache):
        assert isinstance(cache, memoryview)
        self.written = cache


@pytest.mark.parametrize(
    "base",
    [
        trt.IInt8Calibrator,
        trt.IInt8LegacyCalibrator,
        trt.IInt8EntropyCalibrator,
        trt.IInt8EntropyCalibrator2,
        trt.IInt8MinMaxCalibrator,
    ],
)
def test_calibrators(base, raised):
    class Kind(Calibrator, base):
        def __init__(self):
            base.__init__(self)

        if base is trt.IInt8Calibrator:

            def get_algorithm(self):
                return trt.CalibrationAlgoType.MINMAX_CALIBRATION

    kind = Kind()
    seen = probe.calibrate(kind, ["a", "b"])
    assert not raised
    assert seen["cache"] == b"cache" and seen["length"] == 5 and seen["batch size"] == 8
    assert seen["batches"] == [[1, 2], [2**63, 4]] and kind.names == ["a", "b"]
    assert seen["algorithm"] == {
        trt.IInt8LegacyCalibrator: trt.CalibrationAlgoType.LEGACY_CALIBRATION,
        trt.IInt8EntropyCalibrator: trt.CalibrationAlgoType.ENTROPY_CALIBRATION,
        trt.IInt8EntropyCalibrator2: trt.CalibrationAlgoType.ENTROPY_CALIBRATION_2,
    }.get(base, trt.CalibrationAlgoType.MINMAX_CALIBRATION)
    assert bytes(kind.written) == b"TRT-8503-result"  # after the library's bytes are gone


def test_calibrator_with_bad_answers(raised):
    class Bad(Calibrator, trt.IInt8EntropyCalibrator2):
        def __init__(self, answer):
            trt.IInt8EntropyCalibrator2.__init__(self)
            self.answer = answer

        def get_batch(self, names):
            return self.answer

        def read_calibration_cache(self):
            return "text has no buffer"

        def get_batch_size(self):
            return "many"

    for answer in ([1], "ab", [1, "b"], 5, [1, 2.5], [1, np.float32(2)], [1, np.ones(1, np.float32)], {1: 2}):
        seen = probe.calibrate(Bad(answer), ["a", "b"])
        assert seen["batches"] == [] and seen["cache"] is None and seen["length"] == 0 and seen["batch size"] == 0
    assert probe.calibrate(Bad(None), ["a"])["batches"] == []
    assert raised


def test_legacy_calibrator():
    class Legacy(Calibrator, trt.IInt8LegacyCalibrator):
        def __init__(self):
            trt.IInt8LegacyCalibrator.__init__(self)

        def get_quantile(self):
            return 0.75

        def get_regression_cutoff(self):
            return 0.5

        def read_histogram_cache(self, length):
            return None

        def write_histogram_cache(self, ptr, length):
            self.histogram = (ptr, length)

    calibrator = Legacy()
    assert probe.legacy(calibrator) == {"quantile": 0.75, "cutoff": 0.5, "histogram": 0, "length": 0}
    assert calibrator.histogram[0] > 0 and calibrator.histogram[1] == 9


def test_recorder():
    class Recorder(trt.IErrorRecorder):
        def __init__(self):
            trt.IErrorRecorder.__init__(self)
            self.errors = []

        def get_num_errors(self):
            return len(self.errors)

        def get_error_code(self, index):
            return self.errors[index][0]

        def get_error_desc(self, index):
            return self.errors[index][1]

        def has_overflowed(self):
            return True

        def clear(self):
            self.errors = []

        def report_error(self, code, desc):
            self.errors.append((code, desc))
            return True

    recorder = Recorder()
    before = sys.getrefcount(recorder)
    assert probe.recorder(recorder) == [1, True, 1, trt.ErrorCodeTRT.INVALID_STATE, "not now \ufffd", True, 0]
    assert recorder.errors == [] and sys.getrefcount(recorder) == before
    assert trt.IErrorRecorder.MAX_DESC_LENGTH == 127


def test_every_override_is_called_somewhere():
    """The overrides of the facts are those of this file and of callbacks_test.py."""
    import pathlib
    import re

    here = pathlib.Path(__file__).parent
    text = (here / "interfaces_test.py").read_text() + (here / "callbacks_test.py").read_text()
    names = re.findall(r"^override tensorrt\.\w+\.(\w+)\(", (here.parent / "surface" / "python-8.5.txt").read_text(), re.M)
    assert len(names) == 41
    assert {n for n in names if f"def {n}(" not in text} == set()
