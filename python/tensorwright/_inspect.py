# SPDX-License-Identifier: Apache-2.0
"""What an engine is, as a dict that inspect prints and report shows."""

import json
import os

import numpy as np
import tensorrt as trt

from ._model import load

# In the inspector's words of formats and types, and their bytes.
_TYPES = (("FP32", 4), ("FP16", 2), ("BF16", 2), ("UInt8", 1), ("Int8", 1), ("Int32", 4), ("BOOL", 1), ("Bool", 1))


def facts(path, device=None, timed=True):
    """Of a plan file: `tensors`, `profiles`, `layers` in the order of the run (the inspector's JSON of each with `type`,
    `format`, `us`, `limit_us`, `measured`), `types`, `memory` (bytes of tensors that live during each layer) and sums."""
    model = load(path, device)
    engine = model.engine
    inspector = engine.create_engine_inspector()
    inputs, why = None, ""
    try:
        inputs = model.random_inputs()
        with model._context() as taken:
            context = taken.context
            model._shape(taken, list(map(inputs.get, model.inputs)))
            inspector.execution_context = context
            report = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
            inspector.execution_context = None
    except (RuntimeError, ValueError) as error:  # shapes stay open then, and nothing can run
        why, inputs = str(error), None
        report = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    layers = report.get("Layers", [])
    layers = layers[: len(layers) // max(1, engine.num_optimization_profiles)]
    layers = [{"Name": layer} if isinstance(layer, str) else layer for layer in layers]
    detailed = any("LayerType" in layer for layer in layers)
    measured = {}
    if timed and inputs is not None:
        try:
            measured = {layer["name"]: 1000 * layer["ms"] for layer in model.profile(inputs)}
        except (RuntimeError, ValueError) as error:
            why = str(error)
    for layer in layers:
        _add(layer, measured)
    total = sum(layer["us"] for layer in layers)
    types = {}
    for layer in layers:
        row = types.setdefault(layer["type"], {"layers": 0, "us": 0.0})
        row["layers"] += 1
        row["us"] += layer["us"]
    return {
        "file": os.path.basename(path),
        "name": engine.name,
        "device": model.device,
        "plan_bytes": len(model.plan),
        "device_memory_bytes": engine.device_memory_size,
        "refittable": engine.refittable,
        "detailed": detailed,
        "not_measured": why,
        "measured": bool(measured),
        "tensors": [_tensor(engine, model, name) for name in model.inputs + model.outputs],
        "profiles": engine.num_optimization_profiles,
        "layers": layers,
        "types": types,
        "total_us": total,
        "limit_us": sum(layer["limit_us"] or 0.0 for layer in layers),
        "memory": live_bytes(layers),
        "without_fast_kernel": report.get("WithoutFastKernel"),
        "copies": report.get("Copies"),
        "changes": changes(layers),
    }


def add_accuracy(engine, path):
    """Puts what `trtexec --accuracyReport` found into the layers of facts(): `accuracy`, a list of its rows, and into the engine
    `accuracy`: how many tensors were compared, how many are beyond the tolerance, and the worst layer."""
    with open(path, encoding="utf-8") as file:
        try:
            report = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is no JSON: {error}") from None
    rows = [report.get(key) for key in ("Layers", "NotCompared")] if isinstance(report, dict) else [None]
    if not all(isinstance(each, list) and all(isinstance(row, dict) and "Layer" in row for row in each) for each in rows):
        raise ValueError(f"{path} is no report of trtexec --accuracyReport")
    compared, layers = rows[0], {layer["Name"]: layer for layer in engine["layers"]}
    if compared and not any(row["Layer"] in layers for row in compared):
        raise ValueError(f"{path} is of another engine: {engine['file']} has no layer {compared[0]['Layer']!r}")
    for row in [*compared, *rows[1]]:
        if row["Layer"] in layers:
            layers[row["Layer"]].setdefault("accuracy", []).append(row)
    engine["accuracy"] = {
        "compared": len(compared),
        "not_compared": len(rows[1]),
        "beyond": sum(row.get("WithinTolerance") is False for row in compared),
        # A difference that is no number is the worst there is; JSON has null for it.
        "worst": max(compared, key=_difference)["Layer"] if compared else None,
    }


def _difference(row):
    value = row.get("RelativeRms")
    return value if isinstance(value, (int, float)) else float("inf")


def _tensor(engine, model, name):
    profiles = []
    if name in model.inputs:
        for i in range(engine.num_optimization_profiles):
            shape = engine.is_shape_inference_io(name)
            given = engine.get_profile_shape_input(i, name) if shape else engine.get_profile_shape(i, name)
            profiles.append([list(s) for s in given])
    return {
        "name": name,
        "input": name in model.inputs,
        "type": engine.get_tensor_dtype(name).name,
        "shape": list(engine.get_tensor_shape(name)),
        "format": engine.get_tensor_format_desc(name),
        "profiles": profiles,
    }


def type_of(words):
    """(type, bytes of an element) in the inspector's words of a tensor."""
    return next(((name, size) for name, size in _TYPES if name in words), ("", 0))


def bytes_of(tensor):
    """Of a tensor's elements, without what a format pads; 0 where the shape is not known."""
    shape = tensor.get("Dimensions", [])
    if any(n < 0 for n in shape):
        return 0
    return type_of(tensor.get("Format/Datatype", ""))[1] * int(np.prod(shape, dtype=np.int64))


def _add(layer, measured):
    outputs = layer.get("Outputs", [])
    words = outputs[0].get("Format/Datatype", "") if outputs else ""
    layer["type"] = type_of(words)[0] or "?"
    layer["format"] = words
    built = layer.get("TimeMicroseconds", layer.get("EstimateMicroseconds"))
    layer["measured"] = measured.get(layer["Name"])
    us = built if layer["measured"] is None else layer["measured"]
    layer["us"] = float(us or 0.0)
    layer["limit_us"] = layer.get("LimitMicroseconds")
    layer["change"] = _change(layer)


def _change(layer):
    """"FP32 → Int8" where a layer writes numbers of another type than it reads; "" else. Indices and conditions are no such numbers."""
    kinds = {"FP32", "FP16", "BF16", "Int8", "UInt8"}
    read = [type_of(t.get("Format/Datatype", ""))[0] for t in layer.get("Inputs", []) if t.get("Location") != "Host"]
    others = sorted({name for name in read if name in kinds and name != layer["type"]})
    return f"{', '.join(others)} → {layer['type']}" if others and layer["type"] in kinds else ""


def changes(layers):
    """How many layers change the type of numbers, and their time."""
    changing = [layer for layer in layers if layer["change"]]
    return {"layers": len(changing), "us": sum(layer["us"] for layer in changing)}


def live_bytes(layers):
    """For each layer the bytes of the tensors that are alive while it runs: written by it or before, read by it or later. The
    engine's own inputs and outputs count; what only names another tensor does not."""
    born, dead, size, same = {}, {}, {}, {}
    for i, layer in enumerate(layers):
        read = [t["Name"] for t in layer.get("Inputs", []) if t.get("Location") != "Host"]
        for tensor in layer.get("Inputs", []):
            root = _root(same, tensor["Name"])
            if tensor.get("Location") == "Host":
                continue
            born.setdefault(root, 0)
            size.setdefault(root, bytes_of(tensor))
            dead[root] = i
        for tensor in layer.get("Outputs", []):
            if tensor.get("Location") == "Host":
                continue
            if layer.get("LayerType") == "NoOp" and len(read) == 1 and len(layer["Outputs"]) == 1:
                same[tensor["Name"]] = _root(same, read[0])
                continue
            root = _root(same, tensor["Name"])
            born.setdefault(root, i)
            size.setdefault(root, bytes_of(tensor))
            dead[root] = max(dead.get(root, i), i)
    never_read = set(born) - {_root(same, t["Name"]) for layer in layers for t in layer.get("Inputs", [])}
    for root in never_read:
        dead[root] = len(layers) - 1
    change = [0] * (len(layers) + 1)
    for root, first in born.items():
        change[first] += size[root]
        change[dead[root] + 1] -= size[root]
    live, result = 0, []
    for i in range(len(layers)):
        live += change[i]
        result.append(live)
    return result


def _root(same, name):
    while name in same:
        name = same[name]
    return name


def bytes_text(count):
    """With a unit, to three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024


def _first(layers):
    """The name of the first of several, and how many more there are."""
    return layers[0]["Name"] + (f" and {len(layers) - 1} more" if len(layers) > 1 else "")


def main(options):
    engine = facts(options.plan, options.device, options.time)
    if options.json:
        print(json.dumps(engine, indent=1))
        return 0
    print(f"{engine['file']}: {bytes_text(engine['plan_bytes'])}, device {engine['device']}", end="")
    print(", refittable" if engine["refittable"] else "")
    for tensor in engine["tensors"]:
        print(f"  {'in ' if tensor['input'] else 'out'}  {tensor['name']}: {tensor['type']} {tensor['shape']}")
        if -1 in tensor["shape"]:
            for i, (low, best, high) in enumerate(tensor["profiles"]):
                print(f"         profile {i}: {low} .. {high}, tuned for {best}")
    peak = max(engine["memory"], default=0)
    print(f"  memory of a context {bytes_text(engine['device_memory_bytes'])}; tensors at once, at most {bytes_text(peak)}")
    if not engine["detailed"]:
        print(f"  {len(engine['layers'])} layers; built without ProfilingVerbosity.DETAILED, so no more is known of them")
    else:
        kinds = ", ".join(f"{name} {row['layers']}" for name, row in sorted(engine["types"].items()))
        how = "measured here" if engine["measured"] else "at the build"
        print(f"  {len(engine['layers'])} layers ({kinds}), {engine['total_us']:.1f} us {how}, limit {engine['limit_us']:.1f} us")
    if engine["not_measured"]:
        print(f"  not measured: {engine['not_measured']}")
    for reason in (engine["without_fast_kernel"] or {}).get("Reasons", []):
        print(f"  no fast kernel: {_first(reason['Layers'])} ({100 * reason['Share']:.1f} %): {reason['Reason']}")
    if engine["copies"]:
        print(f"  copies and changes of format: {_first(engine['copies']['Layers'])} ({100 * engine['copies']['Share']:.1f} %)")
    if options.layers:
        for i, layer in enumerate(engine["layers"]):
            share = 100 * layer["us"] / engine["total_us"] if engine["total_us"] else 0.0
            limit = f"{min(100.0, 100 * layer['limit_us'] / layer['us']):4.0f} %" if layer["limit_us"] and layer["us"] else "     -"
            tactic = layer.get("TacticName", "")
            print(f"{i:4} {layer['us']:10.1f} us {share:5.1f} %  of limit {limit}  {layer['type']:5} {layer['Name']}  {tactic}")
    return 0
