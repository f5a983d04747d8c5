# SPDX-License-Identifier: Apache-2.0
"""From a model to an engine in one call, with plans kept by content."""

import contextlib
import os
import sys
import threading
import time

import numpy as np
import tensorrt as trt

from . import _memory, _plans
from ._caffe import CaffeModel
from ._calibration import ALGORITHMS
from ._calibration import calibrator as calibrator_of
from ._model import Logger, Model, write
from ._torch import export_module

PRECISIONS = {
    "fp32": (),
    "fp16": (trt.BuilderFlag.FP16,),
    "int8": (trt.BuilderFlag.INT8,),
    "best": (trt.BuilderFlag.FP16, trt.BuilderFlag.INT8),
}


def compile(
    model,
    shapes=None,
    precision="fp32",
    calibration=None,
    device=None,
    *,
    inputs=None,
    refit=False,
    workspace=None,
    cache=True,
    progress=None,
    algorithm=None,
    weights=None,
    outputs=None,
):
    """Builds the engine of a model and gives it as a Model, which is called with arrays.

    model: the name of an ONNX file, its bytes, an onnx.ModelProto, or a torch.nn.Module (then `inputs`, a tuple of example
        tensors, goes to torch's exporter); or the name of a Caffe network's text, *.prototxt.
    weights: of a Caffe network, the name of its file *.caffemodel. outputs: names of blobs; None: those that no layer reads.
    shapes: of inputs that the model leaves open, by name: a shape, or (smallest, usual, largest) shapes. Of a torch module, those
        extents become open that differ from the example's; of a Caffe network, the batch.
    precision: "fp32", "fp16", "int8" or "best", which may be either; Q/DQ models want "int8".
    calibration: for INT8 without Q/DQ: batches, each an array or a dict of arrays by input; or the name of a cache file.
    algorithm: of the calibration by batches: "entropy2", which clamps a tensor where that loses least information, or "minmax",
        which clamps nothing; None: engines of both run on the batches, and the one nearer to the FP32 engine's outputs is taken.
    device: "cpu", "cuda" or "cuda:N"; None: TENSORWRIGHT_DEVICE, else a GPU where there is one.
    refit: weights can be replaced later. workspace: bytes at most.
    cache: True keeps plans in ~/.cache/tensorwright (TENSORWRIGHT_CACHE_DIR, XDG_CACHE_HOME), by the content of all that they
        depend on; a str is another folder; False keeps none.
    progress: a line on the terminal during the build; None: where standard error is one.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision: {precision!r} is none (allowed: {', '.join(PRECISIONS)})")
    if calibration is not None and precision not in ("int8", "best"):
        raise ValueError(f"calibration is for precision 'int8' or 'best', not {precision!r}")
    if algorithm is not None and (algorithm not in ALGORITHMS or calibration is None):
        raise ValueError(f"algorithm: {algorithm!r} is none (allowed: None, {', '.join(ALGORITHMS)}; with calibration=)")
    device = _memory.resolve(device)
    shapes = {name: _three(name, given) for name, given in (shapes or {}).items()}
    source = CaffeModel.of(model, weights, outputs) or _onnx_of(model, inputs, shapes)
    if calibration is not None and not isinstance(calibration, (str, os.PathLike)):
        calibration = [b if isinstance(b, dict) else {None: b} for b in calibration]
        if not calibration:
            raise ValueError("calibration has no batch")
    options = {
        "shapes": shapes,
        "precision": precision,
        "calibration": calibration,
        "device": device,
        "refit": refit,
        "workspace": workspace,
        "algorithm": algorithm,
    }
    path = _plans.place(cache, _plans.key(source, options)) if cache else None
    if path and os.path.exists(path):
        with contextlib.suppress(RuntimeError, OSError):  # a plan that is damaged is built again
            with open(path, "rb") as file:
                return Model(file.read(), device, source, options)
    with Progress(source, progress) as shown:
        choose = algorithm is None and isinstance(calibration, list)
        plan = (_best_of_both if choose else _build)(source, options, shown.logger)
    if path:
        with contextlib.suppress(OSError):  # a folder that cannot be written to keeps nothing
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path, plan)
    return Model(plan, device, source, options)


def _onnx_of(model, inputs, shapes):
    """A file's absolute name, or the bytes of the model."""
    if isinstance(model, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(model))
        if not os.path.isfile(path):
            raise FileNotFoundError(f"there is no model {path}")
        return path
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString()
    if any(c.__module__.startswith("torch.nn.") and c.__name__ == "Module" for c in type(model).__mro__):
        return export_module(model, inputs, shapes)
    raise TypeError(f"model: a file's name, bytes, an onnx.ModelProto or a torch.nn.Module is expected, not {type(model).__name__}")


def _three(name, given):
    """(smallest, usual, largest) of one shape or three."""
    given = tuple(given)
    if given and all(isinstance(shape, (tuple, list)) for shape in given):
        if len(given) != 3 or len({len(shape) for shape in given}) != 1:
            raise ValueError(f"shapes[{name!r}]: a shape, or three of one rank (smallest, usual, largest), not {given}")
        return tuple(tuple(int(n) for n in shape) for shape in given)
    return (tuple(int(n) for n in given),) * 3


def _best_of_both(source, options, logger):
    """The plan of the algorithm whose engine loses least on the calibration batches."""
    asked = []
    plans = {"entropy2": _build(source, {**options, "algorithm": "entropy2"}, logger, asked)}
    if not asked or not _fit(asked[0], options["shapes"]):
        return plans["entropy2"]  # a network of Q/DQ layers; or the engine cannot run on the batches
    plans["minmax"] = _build(source, {**options, "algorithm": "minmax"}, logger)
    exact = Model(_build(source, {**options, "precision": "fp32", "calibration": None}, logger), options["device"])
    batches = [{exact.inputs[0] if name is None else name: a for name, a in b.items()} for b in options["calibration"]]
    wanted = [exact.run(b) for b in batches]
    losses = {}
    for name, plan in plans.items():
        model = Model(plan, options["device"])
        losses[name] = _loss([model.run(b) for b in batches], wanted)
    best = min(losses, key=losses.get)
    logger.log(trt.Logger.INFO, f"calibration: {', '.join(f'{n} loses {v:.2%}' for n, v in losses.items())}: {best} is taken")
    return plans[best]


def _fit(batch, shapes):
    """Whether all arrays are within the shapes that the engine is for."""
    return all(
        all(low <= n <= high for low, n, high in zip(shapes[name][0], shape, shapes[name][2]))
        for name, shape in batch.items()
        if name in shapes
    )


def _loss(results, wanted):
    """Of each output the root of sum (x - ref)^2 / sum ref^2 over all batches; the largest."""
    worst = 0.0
    for name in wanted[0]:
        noise = signal = 0.0
        for result, reference in zip(results, wanted):
            x, ref = (np.asarray(a[name], np.float64) for a in (result, reference))
            noise += np.sum((x - ref) ** 2)
            signal += np.sum(ref**2)
        loss = np.sqrt(noise / signal) if signal else float(noise > 0)
        worst = max(worst, loss if np.isfinite(loss) else np.inf)
    return worst


def _build(source, options, logger, asked=None):
    """A plan. `asked` gets the shapes of a batch where the builder calibrates."""
    with _memory.chosen(options["device"]):
        builder = trt.Builder(logger)
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
        if isinstance(source, CaffeModel):
            source.import_into(network, options["shapes"])
        else:
            parser = trt.OnnxParser(network, logger)
            parsed = parser.parse_from_file(source) if isinstance(source, str) else parser.parse(source)
            if not parsed:
                reasons = [parser.get_error(i).desc() for i in range(parser.num_errors)]
                raise ValueError("the model cannot be imported: " + "; ".join(reasons or logger.errors[-3:]))
        config = builder.create_builder_config()
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        for flag in PRECISIONS[options["precision"]]:
            config.set_flag(flag)
        if options["refit"]:
            config.set_flag(trt.BuilderFlag.REFIT)
        if options["workspace"] is not None:
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, int(options["workspace"]))
        profile = _profile(builder, network, options["shapes"])
        if profile is not None:
            config.add_optimization_profile(profile)
        if options["calibration"] is not None:
            calibrator = calibrator_of(options, network, _memory.memory_of(options["device"]))
            config.int8_calibrator = calibrator
            first = calibrator.shapes()
            if profile is not None and first:
                calibration = builder.create_optimization_profile()
                for name, shape in first.items():
                    calibration.set_shape(name, shape, shape, shape)
                config.set_calibration_profile(calibration)
        plan = builder.build_serialized_network(network, config)
        if options["calibration"] is not None and calibrator.error:
            raise calibrator.error
        if asked is not None and calibrator.at:
            asked.append(calibrator.shapes())
    if plan is None:
        raise logger.failure("the engine could not be built")
    return bytes(plan)


def _profile(builder, network, shapes):
    """The optimization profile of the shapes given, or None where all are known."""
    inputs = {network.get_input(i).name: network.get_input(i) for i in range(network.num_inputs)}
    for name in shapes:
        if name not in inputs:
            raise ValueError(f"shapes: no input is called {name!r} (inputs: {', '.join(inputs)})")
    profile = None
    for name, tensor in inputs.items():
        shape = tuple(tensor.shape)
        if tensor.is_shape_tensor:
            # Its values decide shapes, so they are what a profile is about.
            if name not in shapes:
                raise ValueError(f"input {name!r} decides shapes by its values; say shapes={{{name!r}: values}} or three of them")
            profile = profile or builder.create_optimization_profile()
            profile.set_shape_input(name, *shapes[name])
            continue
        if name in shapes:
            for given in shapes[name]:
                fits = len(given) == len(shape) and all(w in (-1, n) and n >= 0 for w, n in zip(shape, given))
                if not fits:
                    raise ValueError(f"shapes[{name!r}]: {list(given)} does not fit the model's {list(shape)}")
        if -1 not in shape:
            continue
        if name not in shapes:
            example = tuple(1 if n < 0 else n for n in shape)
            raise ValueError(f"input {name!r} has open extents {list(shape)}; say shapes={{{name!r}: {example}}} or three of them")
        profile = profile or builder.create_optimization_profile()
        profile.set_shape(name, *shapes[name])
    return profile


class Progress:
    """One line on the terminal while a build runs: what, how long, the library's last word."""

    def __init__(self, source, shown):
        path = source.path if isinstance(source, CaffeModel) else source
        self.name = os.path.basename(path) if isinstance(path, str) else "model"
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.logger, self.end = Logger(), threading.Event()

    def __enter__(self):
        self.start = time.monotonic()
        self.thread = threading.Thread(target=self._show, daemon=True) if self.shown else None
        if self.thread:
            self.thread.start()
        return self

    def _show(self):
        while not self.end.wait(0.2):
            self._line(self.logger.last.splitlines()[0] if self.logger.last else "")

    def _line(self, text, end=""):
        line = f"building {self.name}: {time.monotonic() - self.start:5.1f} s  {text}"
        width = 100
        with contextlib.suppress(OSError, ValueError):
            width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
        print("\r" + line[:width].ljust(width), end=end, file=sys.stderr, flush=True)

    def __exit__(self, kind, *_):
        self.end.set()
        if self.thread:
            self.thread.join()
            self._line("failed" if kind else "done", "\n")
