# SPDX-License-Identifier: Apache-2.0
"""Facts of engines as _inspect.facts() gives them, made up."""

import numpy as np
from tensorwright import _inspect


def synthetic(count, name="synthetic", seed=1):
    """Facts of an engine of many layers with branches, and names that would be HTML if anybody let them."""
    random = np.random.default_rng(seed)

    def tensor(i):
        return {"Name": f"t{i}", "Dimensions": [1, 8, 14, 14], "Format/Datatype": "Row major linear FP32", "Location": "Device"}

    layers = []
    for i in range(count):
        inputs = [tensor(i - 1)] + ([tensor(int(random.integers(max(0, i - 9), i)))] if i and i % 3 == 0 else [])
        layers.append(
            {
                "Name": f"</script><img src=x onerror=alert(1)> layer {i} &amp; <!-- '\"",
                "LayerType": "Kernel",
                "Op": ["convolution", "elementwise", "pooling"][i % 3],
                "TacticName": f"tactic_{i % 7}",
                "Inputs": inputs,
                "Outputs": [tensor(i)],
                "TimeMicroseconds": float(random.exponential(20)),
                "LimitMicroseconds": 3.0,
                "LimitBytes": 12544,
                "NetworkLayers": [f"network layer {i // 2}"],
                "RunnersUp": [{"TacticName": "slow", "TimeMicroseconds": 99.0, "Reason": "slower <b>"}],
            }
        )
    for layer in layers:
        _inspect._add(layer, {})
    total = sum(layer["us"] for layer in layers)
    return {
        "file": name + " <i>.plan",
        "name": "",
        "device": "cpu",
        "plan_bytes": 12345678,
        "device_memory_bytes": 1 << 20,
        "refittable": False,
        "detailed": True,
        "not_measured": "",
        "measured": False,
        "tensors": [
            {"name": "x", "input": True, "type": "FLOAT", "shape": [-1, 3], "format": "", "profiles": [[[1, 3], [2, 3], [4, 3]]]}
        ],
        "profiles": 1,
        "layers": layers,
        "types": {"FP32": {"layers": count, "us": total}},
        "total_us": total,
        "limit_us": 3.0 * count,
        "memory": _inspect.live_bytes(layers),
        "without_fast_kernel": None,
        "copies": None,
        "changes": _inspect.changes(layers),
    }


def accuracy(*rows):
    """A report of trtexec --accuracyReport: (layer, RelativeRms or the reason why it was not compared)."""
    report = {"Reference": "FP32", "Tolerance": {}, "Layers": [], "NotCompared": []}
    for name, value in rows:
        row = {"Layer": name, "NetworkLayers": [name], "Tactic": "t", "EngineTensor": name + ".y"}
        if isinstance(value, str):
            report["NotCompared"].append({**row, "Reason": value})
            continue
        within = value is not None and value < 0.01
        more = {"Tensor": name + ".y", "Type": "FP16", "Cosine": 0.5, "SqnrDb": None, "MaxAbsolute": 2.0, "RelativeRms": value}
        report["Layers"].append({**row, **more, "WithinTolerance": within})
    return report
