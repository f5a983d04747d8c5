# SPDX-License-Identifier: Apache-2.0
"""An engine as a function of named arrays."""

import contextlib
import math
import mmap
import os
import threading
import time

import numpy as np
import tensorrt as trt

from . import _memory


class Logger(trt.ILogger):
    """Keeps errors, whose text exceptions then carry, and the last line of the library, for who shows progress."""

    def __init__(self, severity=None):
        super().__init__()
        self.shown = severity
        self.errors, self.last = [], ""

    def log(self, severity, msg):
        if severity <= trt.ILogger.ERROR:
            self.errors.append(msg)
            del self.errors[:-20]
        if severity <= trt.ILogger.INFO:
            self.last = msg
        if self.shown is not None and severity <= self.shown:
            print(f"tensorwright: {msg}", flush=True)

    def failure(self, what):
        """The exception that says why `what` failed."""
        return RuntimeError(f"{what}: " + ("; ".join(self.errors[-3:]) or "the library gave no reason"))


class _Output(trt.IOutputAllocator):
    """Memory for an output whose size the run finds out. A context has one of each for all its runs; every run gets memory of its own,
    which is the caller's."""

    def __init__(self, memory):
        super().__init__()
        self.memory = memory
        self.begin()

    def begin(self):
        self.size, self.shape, self.held, self.address = -1, None, None, 0

    def reallocate_output(self, name, memory, size, alignment):
        if size > self.size:
            self.address, self.held = self.memory.make(size)
            self.size = size
        return self.address

    def notify_shape(self, name, shape):
        self.shape = tuple(shape)


class _Context:
    """An execution context, and what of its last run holds for the next: the inputs' shapes, the outputs that follow from them as
    (name, place, shape, type, bytes, memory kept for them), and allocators by the names of those outputs that need one."""

    def __init__(self, context):
        self.context, self.shapes, self.known, self.allocators = context, None, (), {}


class Profile(list):
    """Layers with their times: dicts with `name`, `ms` (mean of the runs) and `share`; as text, a table of the slowest."""

    def __str__(self):
        rows = sorted(self, key=lambda layer: -layer["ms"])[:20]
        lines = [f"{layer['ms']:10.4f} ms {100 * layer['share']:6.1f} %  {layer['name']}" for layer in rows]
        left = len(self) - len(rows)
        return "\n".join(lines + [f"... and {left} more layers"] * (left > 0))


class Comparison(dict):
    """By output: `max_abs`, `max_rel` (of the reference's largest number) and `cosine`; as text, a line each."""

    def __str__(self):
        return "\n".join(
            f"{name}: largest difference {d['max_abs']:.3g}, {d['max_rel']:.3g} of the largest number, cosine {d['cosine']:.6f}"
            for name, d in self.items()
        )


class Model:
    """An engine that is called with arrays by name or in order, NumPy's or torch's, and gives the same kind back: one array where
    there is one output, else a dict. Calls may come from several threads. What keeps arrays from being copied: C order and the
    engine's type; 64-bit integers become 32-bit ones where they fit, since ONNX's are such."""

    def __init__(self, plan, device=None, onnx=None, options=None):
        self.device = _memory.resolve(device)
        self.plan = plan if isinstance(plan, mmap.mmap) else bytes(plan)
        self._onnx, self._options = onnx, options or {}
        self._logger = Logger()
        with _memory.chosen(self.device):
            self._runtime = trt.Runtime(self._logger)
            self.engine = self._runtime.deserialize_cuda_engine(self.plan)
        if self.engine is None:
            raise self._logger.failure("the plan was refused")
        if self.engine.has_implicit_batch_dimension:
            raise ValueError("the engine was built with an implicit batch dimension; build it with an explicit one")
        self._memory = _memory.memory_of(self.device)
        names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        self.inputs = tuple(n for n in names if self.engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT)
        self.outputs = tuple(n for n in names if n not in self.inputs)
        for name in names:
            if self.engine.get_tensor_format(name) != trt.TensorFormat.LINEAR:
                raise ValueError(f"tensor {name!r} is of format {self.engine.get_tensor_format_desc(name)}, arrays are linear")
        self._dtypes = {n: np.dtype(trt.nptype(self.engine.get_tensor_dtype(n))) for n in names}
        # As in 8.5 a profile of open shapes belongs to one context at a time, so calls wait for each other there.
        shapes = [self.engine.get_tensor_shape(n) for n in self.inputs]
        self._hosted = frozenset(filter(self.engine.is_shape_inference_io, self.inputs))
        self._shapes = frozenset(filter(self.engine.is_shape_inference_io, self.outputs))
        single = any(-1 in tuple(s) for s in shapes) or bool(self._hosted)
        self._free, self._made, self._most = [], 0, 1 if single else None
        self._turn = threading.Condition()

    def __repr__(self):
        def show(names):
            return ", ".join(f"{n}: {self._dtypes[n]}{list(self.engine.get_tensor_shape(n))}" for n in names)

        return f"<tensorwright.Model on {self.device}: {show(self.inputs)} -> {show(self.outputs)}>"

    def __call__(self, *arrays, **named):
        results = self.run(self._by_name(arrays, named))
        return next(iter(results.values())) if len(results) == 1 else results

    def run(self, inputs):
        """Outputs by name, a dict also where there is one."""
        results, torch = self._execute(inputs)
        return {n: torch.from_numpy(a) for n, a in results.items()} if torch else results

    def save(self, path):
        """Writes the plan, which load() and trtexec read; the file is there whole or not at all."""
        write(path, self.plan)

    def profile(self, *arrays, runs=10, **named):
        """Times of layers over `runs` runs, of the arrays given, else of random ones."""
        inputs = self._by_name(arrays, named) if arrays or named else self.random_inputs()
        times = {}

        class Recorder(trt.IProfiler):
            def report_layer_time(self, layer_name, ms):
                times.setdefault(layer_name, []).append(ms)

        with self._context() as taken:
            recorder = Recorder()
            self._execute(inputs, taken)
            taken.context.profiler = recorder
            for _ in range(runs):
                self._execute(inputs, taken)
            taken.context.profiler = None
        means = {name: sum(ms) / runs for name, ms in times.items()}
        total = sum(means.values()) or 1.0
        return Profile({"name": name, "ms": ms, "share": ms / total} for name, ms in means.items())

    def compare(self, *arrays, reference=None, **named):
        """How far outputs are from a reference's, for the arrays given, else for random ones: a dict of arrays by output, a
        function of the inputs by name that gives one, "onnxruntime", or "fp32", this engine built without lower precisions.
        None: ONNX Runtime where it is installed, else "fp32"; both need the model, which a Model that was loaded lacks."""
        inputs = self._by_name(arrays, named) if arrays or named else self.random_inputs()
        expected = reference
        if not isinstance(reference, dict):
            expected = (reference if callable(reference) else self._reference(reference))(inputs)
        results, _ = self._execute(inputs)
        comparison = Comparison()
        for name, y in results.items():
            if name not in expected:
                raise KeyError(f"the reference has no output {name!r} (it has: {', '.join(map(repr, expected))})")
            comparison[name] = difference(y, _as_numpy(expected[name])[0], name)
        return comparison

    def random_inputs(self, seed=0):
        """Arrays for every input at the shapes that the engine was tuned for: normal floats, small integers that are 0 or 1."""
        random, result = np.random.default_rng(seed), {}
        for name in self.inputs:
            dtype = self._dtypes[name]
            if self.engine.is_shape_inference_io(name):
                values = self.engine.get_profile_shape_input(0, name)
                result[name] = np.array(values[1], dtype).reshape(tuple(self.engine.get_tensor_shape(name)))
                continue
            shape = tuple(self.engine.get_tensor_shape(name))
            if -1 in shape:
                shape = tuple(self.engine.get_profile_shape(0, name)[1])
            x = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 2, shape)
            result[name] = np.asarray(x, dtype)
        return result

    def _reference(self, kind):
        if self._onnx is None:
            raise ValueError("compare: this model was loaded from a plan; give reference= a function or a dict of arrays")
        if kind is None and not isinstance(self._onnx, (str, bytes)):
            kind = "fp32"  # a Caffe model
        if kind in (None, "onnxruntime"):
            if not isinstance(self._onnx, (str, bytes)):
                raise ValueError("compare: ONNX Runtime reads no Caffe model (allowed: 'fp32', a function, a dict)")
            try:
                import onnxruntime
            except ImportError:
                if kind:
                    raise
            else:
                return lambda inputs: onnx_runtime(onnxruntime, self._onnx, inputs)
        elif kind != "fp32":
            raise ValueError(f"compare: {kind!r} is no reference (allowed: 'onnxruntime', 'fp32', a function, a dict)")
        from ._compile import compile

        options = {**self._options, "precision": "fp32", "calibration": None}
        return compile(self._onnx, **options).run

    def _by_name(self, arrays, named):
        if len(arrays) == 1 and isinstance(arrays[0], dict) and not named:
            return arrays[0]
        if len(arrays) > len(self.inputs):
            raise TypeError(f"{len(arrays)} arrays were given, the model has {len(self.inputs)} inputs: {', '.join(self.inputs)}")
        inputs = dict(zip(self.inputs, arrays))
        for name, array in named.items():
            if name in inputs:
                raise TypeError(f"input {name!r} was given twice")
            inputs[name] = array
        return inputs

    @contextlib.contextmanager
    def _context(self):
        """A _Context that nobody else has meanwhile."""
        taken = self._take()
        try:
            yield taken
        except BaseException:
            self._give(None)
            raise
        self._give(taken)

    def _take(self):
        with self._turn:
            while not self._free and self._made == self._most:
                self._turn.wait()
            if self._free:
                return self._free.pop()
            self._made += 1
        try:
            context = self.engine.create_execution_context()
            if context is None:
                raise self._logger.failure("no execution context could be made")
            return _Context(context)
        except BaseException:
            self._give(None)
            raise

    def _give(self, taken):
        """Gives a context back; None for one whose run failed, as what that left in it is of no use."""
        with self._turn:
            if taken is None:
                self._made -= 1
            else:
                self._free.append(taken)
            if self._most:
                self._turn.notify()

    def _execute(self, inputs, taken=None):
        """({output: array}, torch where an input came from it)."""
        names = self.inputs
        if len(inputs) != len(names) or not all(map(inputs.__contains__, names)):
            unknown = [n for n in inputs if n not in names]
            missing = [n for n in names if n not in inputs]
            what = f"no input is called {unknown[0]!r}" if unknown else f"input {missing[0]!r} is missing"
            raise TypeError(f"{what} (inputs: {', '.join(names)})")
        torch, arrays = None, []
        for name in names:
            array = inputs[name]
            if type(array) is not np.ndarray:
                array, module = _as_numpy(array)
                torch = torch or module
            # As the engine reads it: nothing is to be done.
            if array.dtype is not self._dtypes[name] or not array.flags.c_contiguous:
                array = self._checked(name, array)
            arrays.append(array)
        if taken is not None:
            return self._on(taken, arrays), torch
        taken = self._take()
        try:
            results = self._on(taken, arrays)
        except BaseException:
            self._give(None)
            raise
        self._give(taken)
        return results, torch

    def _on(self, taken, arrays):
        context, memory, results = taken.context, self._memory, {}
        shapes = [array.shape for array in arrays]
        # Values that decide shapes are new in each run.
        if taken.shapes != shapes or self._hosted:
            held = self._shape(taken, arrays)
            taken.shapes = shapes
        else:
            held = []
            for name, array in zip(self.inputs, arrays):
                address, keep = memory.take(array)
                held.append(keep)
                context.set_tensor_address(name, address)
        for name, place, shape, dtype, nbytes, kept in taken.known:
            address, results[name] = place.empty(shape, dtype, nbytes, kept)
            context.set_tensor_address(name, address)
        for output in taken.allocators.values():
            output.begin()
        if not context.execute_async_v3(0):
            raise self._logger.failure("the run failed")
        memory.wait(0)
        for name, place, shape, dtype, nbytes, _ in taken.known:
            results[name] = place.fetch(results[name], shape, dtype, nbytes)
        if not taken.allocators:
            return results
        for name, output in taken.allocators.items():
            nbytes = self._dtypes[name].itemsize * math.prod(output.shape)
            if output.held is None:  # an output of no elements, for which nothing was asked
                output.address, output.held = memory.make(nbytes)
            results[name] = memory.read(output.held, nbytes).view(self._dtypes[name]).reshape(output.shape)
            output.begin()  # what is the caller's is held by nobody else
        return {name: results[name] for name in self.outputs}

    def _shape(self, taken, arrays):
        """Sets shapes and addresses of inputs, finds out those of outputs; gives what keeps the inputs' memory."""
        self._logger.errors.clear()
        context, held, taken.shapes, taken.known = taken.context, [], None, []
        for (
            name
        ) in self._shapes:  # which the computation of shapes would write to where the last run had them: in the caller's arrays
            context.set_tensor_address(name, 0)
        for name, array in zip(self.inputs, arrays):
            if not context.set_input_shape(name, array.shape):
                raise self._refused(name, array)
            # Values that decide shapes are read on the host.
            place = _memory.Host() if name in self._hosted else self._memory
            address, keep = place.take(array)
            held.append(keep)
            context.set_tensor_address(name, address)
        if context.infer_shapes():
            raise self._logger.failure("shapes could not be computed")
        for name in self.outputs:
            shape, dtype = tuple(context.get_tensor_shape(name)), self._dtypes[name]
            if name in taken.allocators:
                continue
            if -1 in shape:
                output = taken.allocators[name] = _Output(self._memory)
                context.set_output_allocator(name, output)
                continue
            place = _memory.Host() if name in self._shapes else self._memory
            taken.known.append((name, place, shape, dtype, dtype.itemsize * math.prod(shape), []))
        return held

    def _checked(self, name, array):
        dtype = self._dtypes[name]
        if array.dtype != dtype:
            if dtype == np.int32 and array.dtype.kind in "iu":
                limits = np.iinfo(np.int32)
                if array.size and (array.max() > limits.max or array.min() < limits.min):
                    raise OverflowError(f"input {name!r}: {array.dtype} numbers that do not fit into int32, which the engine takes")
            else:
                raise TypeError(f"input {name!r} is {array.dtype}, the engine takes {dtype}: pass {name}.astype({str(dtype)!r})")
        return np.ascontiguousarray(array, dtype).reshape(array.shape)  # ascontiguousarray makes a dimension of none

    def _refused(self, name, array):
        shape = list(self.engine.get_tensor_shape(name))
        text = f"input {name!r} has the shape {list(array.shape)}, the engine takes {shape}"
        if -1 in shape:
            low, _, high = self.engine.get_profile_shape(0, name)
            text += f", from {list(low)} to {list(high)}"
        return ValueError(text)


def write(path, data):
    """A file with these bytes, which nobody sees half written."""
    path = os.fspath(path)
    part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise


def _as_numpy(value):
    """(array, torch where the value is a tensor of it)."""
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        import torch

        return value.detach().cpu().numpy(), torch
    array = np.asarray(value)
    # Lists and numbers of Python have no type of their own.
    if array.dtype == np.float64 and not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype(np.float32)
    return array, None


def difference(y, expected, name="output"):
    """max_abs, max_rel and cosine of two arrays."""
    if y.shape != tuple(expected.shape):
        raise ValueError(f"output {name!r} has the shape {y.shape}, the reference's {tuple(expected.shape)}")
    a, b = y.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    if not a.size:
        return {"max_abs": 0.0, "max_rel": 0.0, "cosine": 1.0}
    if np.isnan(a).any() != np.isnan(b).any() or (np.isnan(a) != np.isnan(b)).any():
        return {"max_abs": float("nan"), "max_rel": float("nan"), "cosine": float("nan")}
    same = (a == b) | np.isnan(a)  # infinities of one sign, too
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
    a, b = (np.where(np.isfinite(x), x, 0.0) for x in (a, b))
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return {
        "max_abs": float(gap.max()),
        "max_rel": float(gap.max() / (np.abs(b).max() or 1.0)),
        "cosine": float(a @ b / norms) if norms else 1.0,
    }


def onnx_runtime(onnxruntime, model, inputs):
    """ONNX Runtime's outputs by name, by its plain kernels, as its fused integer ones saturate on some CPUs; 32-bit integers go back to
    the 64-bit ones that the model declares."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    declared = {t.name: t.type for t in session.get_inputs()}
    given = {}
    for name, value in inputs.items():
        array = _as_numpy(value)[0]
        given[name] = array.astype(np.int64) if declared.get(name) == "tensor(int64)" else array
    names = [t.name for t in session.get_outputs()]
    return dict(zip(names, session.run(names, {n: a for n, a in given.items() if n in declared})))


def load(path, device=None):
    """The Model of a plan: a file's name, or the bytes."""
    if isinstance(path, (bytes, bytearray, memoryview, trt.IHostMemory)):
        return Model(path, device)
    with open(path, "rb") as file:
        return Model(file.read(), device)


def timed(function, seconds=0.3, least=5):
    """Seconds of calls: for about `seconds`, `least` times at least, after one that does not count."""
    function()
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times
