# SPDX-License-Identifier: Apache-2.0
"""Energy as machines count it: by RAPL of the CPU's packages, by NVML of a GPU. `trtexec --power` reads the same."""

import ctypes
import os
import re
import time

IDLE = 1.0  # seconds for which a device with nothing to do is looked at
LAG = 0.2  # seconds by which counters may lag behind (those of GPUs): runs go on for so long before they count


class NotReadable(Exception):
    """Its text is the reason."""


def _line(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError as error:
        hint = " (most kernels let root alone read energy counters)" if isinstance(error, PermissionError) else ""
        raise NotReadable(f"'{path}' cannot be read: {error.strerror}{hint}") from None


def _count(path):
    text = _line(path)
    if not re.fullmatch("[0-9]{1,19}", text):
        raise NotReadable(f"'{path}' holds {text[:40]!r}, which is no count of microjoules")
    return int(text)


class Rapl:
    """All packages of the CPU. To be read more often than counters run over, which takes a minute or more."""

    def __init__(self, folder):
        try:
            names = sorted(n for n in os.listdir(folder) if re.fullmatch("intel-rapl:[0-9]+", n))  # N:M is a part of N
        except OSError as error:
            raise NotReadable(f"'{folder}': {error.strerror}; the kernel shows no energy counters of the CPU (RAPL) here") from None
        folders = [os.path.join(folder, n) for n in names]
        # psys is the whole machine, with the packages in it.
        folders = [f for f in folders if _line(os.path.join(f, "name")).startswith("package")]
        if not folders:
            raise NotReadable(f"'{folder}' has no counter of a CPU's package (intel-rapl:N)")
        self.source = f"RAPL, {len(folders)} CPU package{'' if len(folders) == 1 else 's'}"
        self.largest = {os.path.join(f, "energy_uj"): _count(os.path.join(f, "max_energy_range_uj")) for f in folders}
        self.last = {path: _count(path) for path in self.largest}
        self.total = 0

    def joules(self):
        for path, last in self.last.items():
            now = self.last[path] = _count(path)
            # A counter that goes back has passed its largest number; where that cannot be, it began again.
            self.total += now - last if now >= last else max(self.largest[path] - last, 0) + now
        return self.total / 1e6


class Nvml:
    """The GPU at this address of the PCI bus, the whole of it."""

    source = "NVML, the GPU's energy counter"

    def __init__(self, bus_id):
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            self.library.nvmlErrorString.restype = ctypes.c_char_p
            self._checked("nvmlInit_v2")
            self.device = ctypes.c_void_p()
            self._checked("nvmlDeviceGetHandleByPciBusId_v2", bus_id.encode(), ctypes.byref(self.device))
        except (OSError, AttributeError) as error:
            raise NotReadable(f"NVML, which tells a GPU's energy, cannot be used: {error}") from None
        self.joules()

    def _checked(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise NotReadable(f"NVML: {name}: {self.library.nvmlErrorString(status).decode(errors='replace')} ({status})")

    def joules(self):
        millijoules = ctypes.c_ulonglong()
        self._checked("nvmlDeviceGetTotalEnergyConsumption", self.device, ctypes.byref(millijoules))
        return millijoules.value / 1000


def _bus_id(index):
    """Of the GPU that the CUDA driver numbers so. No context is made, which would keep the GPU from its rest."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        device, text = ctypes.c_int(), ctypes.create_string_buffer(64)
        for name, *arguments in (
            ("cuInit", ctypes.c_uint(0)),
            ("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index)),
            ("cuDeviceGetPCIBusId", text, ctypes.c_int(len(text)), device),
        ):
            if status := getattr(library, name)(*arguments):
                raise NotReadable(f"CUDA driver: {name} failed ({status})")
    except (OSError, AttributeError) as error:
        raise NotReadable(f"the CUDA driver does not tell where the GPU is: {error}") from None
    return text.value.decode(errors="replace")


def counter_of(device):
    """The counter of "cpu" or "cuda:N"; NotReadable has the reason why there is none."""
    if device != "cpu":
        return Nvml(_bus_id(int(device.partition(":")[2])))
    return Rapl(os.environ.get("TENSORWRIGHT_POWERCAP", "/sys/class/powercap"))


class Meter:
    """What runs on a device use, summed up over parts. Nothing here fails: what goes wrong is the reason in facts()."""

    def __init__(self, device):
        self.joules = self.seconds = self.runs = 0
        self.reason, self.begun, self.idle_w = None, None, 0.0
        try:
            self.counter = counter_of(device)
        except NotReadable as error:
            self.reason = str(error)

    def take_as_idle(self):
        """What was summed up so far."""
        if self.seconds:
            self.idle_w = self.joules / self.seconds
        self.joules = self.seconds = 0

    def begin(self):
        self.begun = self._now()

    def end(self, runs):
        now = self._now()
        if now and self.begun:
            self.joules += now[0] - self.begun[0]
            self.seconds += now[1] - self.begun[1]
            self.runs += runs

    def _now(self):
        try:
            return None if self.reason else (self.counter.joules(), time.monotonic())
        except NotReadable as error:
            self.reason = str(error)
            return None

    def facts(self):
        if not self.reason and not self.runs:
            self.reason = "nothing was measured"
        elif not self.reason and self.joules <= 0:
            self.reason = f"{self.counter.source}: the counter did not move in {self.seconds:.3g} s"
        if self.reason:
            return {"not_readable": self.reason}
        each = self.joules / self.runs
        return {
            "source": self.counter.source,
            "mean_w": self.joules / self.seconds,
            "idle_w": self.idle_w,
            "energy_per_inference_j": each,
            "energy_above_idle_per_inference_j": each - self.idle_w * self.seconds / self.runs,
            "inferences_per_joule": 1 / each,
            "inferences": self.runs,
            "seconds": self.seconds,
        }


def look_at_idle(meters):
    """While nothing runs."""
    if all(meter.reason for meter in meters):
        return
    time.sleep(LAG)
    for meter in meters:
        meter.begin()
    time.sleep(IDLE)
    for meter in meters:
        meter.end(0)
        meter.take_as_idle()
