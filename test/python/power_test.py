# SPDX-License-Identifier: Apache-2.0
"""Energy and memory of `tensorwright bench`, beside counters that the test writes and moves."""

import ast
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import pytest
import tensorrt as trt
from tensorwright import _power, _programs

from models import Resnet


def domain(folder, name, what, count, largest=262143328850):
    """A folder like those of /sys/class/powercap."""
    (folder / name).mkdir()
    for file, text in (("name", what), ("max_energy_range_uj", largest), ("energy_uj", count)):
        (folder / name / file).write_text(f"{text}\n")
    return folder / name / "energy_uj"


def test_packages_and_nothing_twice(tmp_path):
    moved = [domain(tmp_path, "intel-rapl:0", "package-0", 1000), domain(tmp_path, "intel-rapl:10", "package-1-die-0", 0)]
    others = [domain(tmp_path, n, w, 0) for n, w in (("intel-rapl:0:0", "core"), ("intel-rapl:1", "psys"), ("intel-rapl-mmio:0", "package-0"))]
    counter = _power.Rapl(tmp_path)
    assert counter.source == "RAPL, 2 CPU packages" and counter.joules() == 0
    for path, count in zip([*moved, *others], (2001000, 500000, 9000000, 9000000, 9000000), strict=True):
        path.write_text(str(count))
    assert counter.joules() == 2.5 == counter.joules()


def test_counters_run_over(tmp_path):
    largest, chance, sum_ = 10**7, random.Random(37), 0
    path = domain(tmp_path, "intel-rapl:0", "package-0", 0, largest)
    counter, at = _power.Rapl(tmp_path), 0
    for _ in range(500):
        step = chance.randrange(largest)
        sum_, at = sum_ + step, at + step
        at = at - largest if at > largest else at
        path.write_text(f"{at}\n")
        assert counter.joules() == pytest.approx(sum_ / 1e6)
    domain(tmp_path, "intel-rapl:1", "package-1", 9, 5)  # above its range: then it began again
    counter = _power.Rapl(tmp_path)
    (tmp_path / "intel-rapl:1/energy_uj").write_text("3")
    assert counter.joules() == 3e-6


def refusal(device="cpu"):
    with pytest.raises(_power.NotReadable) as caught:
        _power.counter_of(device).joules()
    return str(caught.value)


def test_reasons(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORWRIGHT_POWERCAP", str(tmp_path / "missing"))
    assert "missing': No such file or directory; the kernel shows no energy counters" in refusal()
    monkeypatch.setenv("TENSORWRIGHT_POWERCAP", str(tmp_path))
    assert "has no counter of a CPU's package" in refusal()
    path = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    _power.counter_of("cpu")
    for bad in ("", "x", "-1", "1.5", "9" * 30, "1 2", "\N{ARABIC-INDIC DIGIT ONE}"):
        path.write_text(bad, encoding="utf-8")
        assert "no count of microjoules" in refusal() and "intel-rapl:0/energy_uj" in refusal()
    path.unlink()
    path.mkdir()
    assert "energy_uj' cannot be read: Is a directory" in refusal()
    monkeypatch.setattr(_power.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(f"{name}: no such library")))
    assert refusal("cuda:0") == "the CUDA driver does not tell where the GPU is: libcuda.so.1: no such library"


class Library:
    """A driver and an NVML in one, whose counter moves by 3 J each time it is read."""

    def __init__(self, failing=""):
        self.failing, self.millijoules = failing, 10**9

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        class Function:
            def __call__(_, *arguments):
                if name == self.failing:
                    return 3
                if name == "cuDeviceGetPCIBusId":
                    arguments[0].value = b"0000:65:00.0"
                elif name == "nvmlDeviceGetHandleByPciBusId_v2":
                    assert arguments[0] == b"0000:65:00.0"
                elif name == "nvmlDeviceGetTotalEnergyConsumption":
                    self.millijoules += 3000
                    arguments[1]._obj.value = self.millijoules
                elif name == "nvmlErrorString":
                    return b"Not Supported"
                return 0

        return Function()


def test_gpu(monkeypatch):
    library = Library()
    monkeypatch.setattr(_power.ctypes, "CDLL", lambda name: library)
    counter = _power.counter_of("cuda:1")
    first = counter.joules()
    assert counter.joules() - first == 3 and counter.source == "NVML, the GPU's energy counter"
    for name, reason in (
        ("cuDeviceGet", "CUDA driver: cuDeviceGet failed (3)"),
        ("nvmlInit_v2", "NVML: nvmlInit_v2: Not Supported (3)"),
        ("nvmlDeviceGetTotalEnergyConsumption", "NVML: nvmlDeviceGetTotalEnergyConsumption: Not Supported (3)"),
    ):
        library.failing = name
        assert refusal("cuda:1") == reason


def test_meter(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORWRIGHT_POWERCAP", str(tmp_path))
    path = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    meter, now = _power.Meter("cpu"), [100.0]
    monkeypatch.setattr(_power.time, "monotonic", lambda: now[0])

    def part(seconds, joules, runs):
        meter.begin()
        now[0] += seconds
        path.write_text(str(int(path.read_text()) + int(joules * 1e6)))
        meter.end(runs)

    part(2, 20, 0)
    meter.take_as_idle()
    part(1, 50, 5)
    path.write_text("99000000")  # between two parts: not counted
    part(3, 150, 15)
    facts = meter.facts()
    assert facts == pytest.approx(
        {"source": "RAPL, 1 CPU package", "mean_w": 50, "idle_w": 10, "energy_per_inference_j": 10, "inferences": 20, "seconds": 4}
        | {"energy_above_idle_per_inference_j": 8, "inferences_per_joule": 0.1}
    )
    path.unlink()
    part_of_none = meter.reason
    meter.begin()
    meter.end(1)
    assert part_of_none is None and "energy_uj' cannot be read" in meter.facts()["not_readable"]
    still = tmp_path / "still"
    still.mkdir()
    domain(still, "intel-rapl:0", "package-0", 7)
    monkeypatch.setenv("TENSORWRIGHT_POWERCAP", str(still))
    meter = _power.Meter("cpu")
    assert meter.facts() == {"not_readable": "nothing was measured"}
    meter = _power.Meter("cpu")
    meter.begin()
    now[0] += 2
    meter.end(1)
    assert meter.facts() == {"not_readable": "RAPL, 1 CPU package: the counter did not move in 2 s"}


@contextlib.contextmanager
def moving(path, watts):
    """A count that a thread moves; a new file takes the old one's place at once."""
    ended, joules = threading.Event(), [0.0]

    def move():
        last = time.monotonic()
        while not ended.wait(0.005):
            now = time.monotonic()
            joules[0] += watts * (now - last)
            last = now
            fresh = path.with_name("fresh")
            fresh.write_text(f"{round(joules[0] * 1e6)}\n")
            fresh.rename(path)

    thread = threading.Thread(target=move)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_bench(tmp_path, capfd, monkeypatch):
    model, file, folder = tmp_path / "net.onnx", tmp_path / "bench.json", tmp_path / "powercap"
    model.write_bytes(Resnet(size=16).model())
    folder.mkdir()
    path = domain(folder, "intel-rapl:0", "package-0", 0)
    arguments = ["bench", str(model), "--power", "--rounds", "3", "--turn", "0.2", "--json", str(file), "--device", "cpu"]
    monkeypatch.setenv("TENSORWRIGHT_POWERCAP", str(folder))
    with moving(path, 40.0):
        assert _programs.main(arguments) == 0
    out = capfd.readouterr().out
    engines = json.loads(file.read_text())["engines"]
    for facts in engines.values():
        power = facts["power"]
        assert power["mean_w"] == pytest.approx(40, rel=0.3) and power["idle_w"] == pytest.approx(40, rel=0.3)
        assert power["energy_per_inference_j"] * power["inferences"] == pytest.approx(power["mean_w"] * power["seconds"])
        assert power["inferences"] >= 3 and facts["peak_memory_mib"] > 10
        assert f"peak memory {facts['peak_memory_mib']:.1f} MiB" in out
        assert f"{power['energy_per_inference_j']:.4g} J per inference" in out
    assert "on the GPU" not in out

    monkeypatch.setenv("TENSORWRIGHT_POWERCAP", str(tmp_path / "none"))
    assert _programs.main(arguments) == 0
    out = capfd.readouterr().out
    assert out.count("power is not readable here: ") == len(engines) == out.count("peak memory")
    assert _programs.main([a for a in arguments if a != "--power"]) == 0
    assert "power" not in capfd.readouterr().out and "power" not in json.loads(file.read_text())["engines"]["tensorwright"]


ON_A_GPU = """
import time
from tensorwright import _memory, _power
meter = _power.Meter("cuda:0")
_power.look_at_idle([meter])
meter.begin()
time.sleep(0.3)
meter.end(3)
memory = _memory.memory_of("cuda:0")
before = memory.used()
block = memory.make(5 << 20)
print({**meter.facts(), "rise": memory.used() - before})
"""


def test_on_a_fake_gpu():
    """A driver and an NVML of test/trtexec; in a process of its own, because the loader looks for them there."""
    build = pathlib.Path(trt.tensorrt.__file__).resolve().parents[2]
    folders = [build / "fake_nvml", build / "fake_gpu"]
    if not (folders[0] / "libnvidia-ml.so.1").exists() or not (folders[1] / "libcuda.so.1").exists():
        pytest.skip("the fake GPU of test/trtexec is not built")
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders)), "FAKE_NVML_WATTS": "200"}
    result = subprocess.run([sys.executable, "-c", ON_A_GPU], capture_output=True, text=True, env=environment, timeout=100, check=False)
    assert result.returncode == 0, result.stderr
    facts = ast.literal_eval(result.stdout.splitlines()[-1])
    assert facts["mean_w"] == pytest.approx(200, rel=0.1) and facts["idle_w"] == pytest.approx(200, rel=0.1)
    assert facts["energy_per_inference_j"] == pytest.approx(200 * facts["seconds"] / 3, rel=0.1) and facts["rise"] == 5 << 20
    environment["FAKE_NVML"] = "power"
    result = subprocess.run([sys.executable, "-c", ON_A_GPU], capture_output=True, text=True, env=environment, timeout=100, check=False)
    assert "NVML: nvmlDeviceGetTotalEnergyConsumption: Not Supported (3)" in result.stdout, result.stdout + result.stderr
