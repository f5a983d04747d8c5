# SPDX-License-Identifier: Apache-2.0
"""Python classes that the library calls: loggers, profilers, recorders, allocators, selectors, calibrators. They are called
as 8.5 calls them, may raise, and may come and go in any order."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import tensorrt as trt

from models import close, conv2d
from small import B, LOUD, QUIET, W, convolution, engine_of, run

X = np.random.default_rng(5).standard_normal((1, 3, 8, 8)).astype(np.float32)
Y = np.maximum(conv2d(X, W, B, padding=1), 0)


class Logger(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.messages = []

    def log(self, severity, msg):
        assert isinstance(severity, trt.ILogger.Severity) and isinstance(msg, str)
        self.messages.append((severity, msg))


@pytest.fixture
def raised():
    """Exceptions that callbacks could not hand on."""
    found, before = [], sys.unraisablehook
    sys.unraisablehook = lambda report: found.append((report.exc_type, report.object))
    yield found
    sys.unraisablehook = before


def test_logger():
    logger = Logger()
    engine = engine_of(*convolution(logger), logger)
    close(run(engine, x=X)["y"], Y)
    severities = {severity for severity, _ in logger.messages}
    assert trt.Logger.INFO in severities and trt.Logger.VERBOSE in severities
    assert any("conv" in text for _, text in logger.messages)
    builder = trt.Builder(logger)
    assert builder.logger is logger


def test_logger_that_raises(raised):
    class Raises(Logger):
        def log(self, severity, msg):
            raise KeyError(msg)

    logger = Raises()
    close(run(engine_of(*convolution(logger), logger), x=X)["y"], Y)
    assert raised and {kind for kind, _ in raised} == {KeyError} and raised[0][1] == "log"


def test_logger_without_log(capfd):
    class Silent(trt.ILogger):
        def __init__(self):
            trt.ILogger.__init__(self)

    trt.Builder(Silent()).create_network(1).add_input("x", trt.float32, (1, -2))
    assert "Silent does not define log()" in capfd.readouterr().err
    with pytest.raises(RuntimeError, match="pure virtual"):
        Silent().log(trt.Logger.INFO, "text")


def test_logger_without_init():
    class Forgets(trt.ILogger):
        def __init__(self):
            pass

    with pytest.raises((RuntimeError, TypeError)):
        trt.Builder(Forgets())


def test_printing_logger(capfd):
    logger = trt.Logger(min_severity=trt.Logger.WARNING)
    logger.log(trt.Logger.INFO, "not shown")
    logger.log(trt.Logger.ERROR, "shown as an error")
    logger.min_severity = trt.Logger.VERBOSE
    logger.log(severity=trt.Logger.VERBOSE, msg="now shown")
    out, err = capfd.readouterr()
    assert "[TRT] [E] shown as an error\n" in out and "[TRT] [V] now shown\n" in out and "not shown" not in out and not err


def test_profiler(raised):
    class Profiler(trt.IProfiler):
        def __init__(self):
            trt.IProfiler.__init__(self)
            self.times = {}

        def report_layer_time(self, layer_name, ms):
            self.times[layer_name] = ms

    engine = engine_of(*convolution())
    context = engine.create_execution_context()
    assert context.profiler is None
    profiler = Profiler()
    context.profiler = profiler
    assert context.profiler is profiler
    run(engine, context, x=X)
    assert (
        len(profiler.times) >= 1
        and all(ms >= 0 for ms in profiler.times.values())
        and any("conv" in name for name in profiler.times)
    )
    context.enqueue_emits_profile = False
    profiler.times.clear()
    run(engine, context, x=X)
    assert not profiler.times and context.report_to_profiler() and profiler.times

    class Raises(Profiler):
        def report_layer_time(self, layer_name, ms):
            raise ZeroDivisionError

    context.enqueue_emits_profile = True
    context.profiler = Raises()
    close(run(engine, context, x=X)["y"], Y)
    assert raised and raised[0] == (ZeroDivisionError, "report_layer_time")
    context.profiler = None
    raised.clear()
    close(run(engine, context, x=X)["y"], Y)
    assert not raised


def test_printing_profiler(capfd):
    engine = engine_of(*convolution())
    context = engine.create_execution_context()
    context.profiler = trt.Profiler()
    run(engine, context, x=X)
    assert "conv" in capfd.readouterr().out


class Recorder(trt.IErrorRecorder):
    def __init__(self):
        trt.IErrorRecorder.__init__(self)
        self.errors = []

    def get_num_errors(self):
        return len(self.errors)

    def get_error_code(self, index):
        return self.errors[index][0] if index < len(self.errors) else trt.ErrorCodeTRT.INVALID_ARGUMENT

    def get_error_desc(self, index):
        return self.errors[index][1]

    def has_overflowed(self):
        return False

    def clear(self):
        self.errors.clear()

    def report_error(self, code, desc):
        self.errors.append((code, desc))
        return False


def test_recorder():
    recorder = Recorder()
    runtime = trt.Runtime(QUIET)
    assert runtime.error_recorder is None
    runtime.error_recorder = recorder
    assert runtime.error_recorder is recorder
    assert runtime.deserialize_cuda_engine(b"no plan") is None
    assert recorder.errors and isinstance(recorder.errors[0][0], trt.ErrorCodeTRT) and recorder.errors[0][1]
    assert recorder.num_errors() == len(recorder.errors) and recorder.get_error_desc(0) == recorder.errors[0][1]
    runtime.error_recorder = None
    recorder.clear()
    assert runtime.deserialize_cuda_engine(b"no plan") is None and not recorder.errors
    # The library's references keep it, and let go.
    kept = weakref.ref(recorder) if hasattr(recorder, "__weakref__") else None
    runtime.error_recorder = recorder
    del recorder
    gc.collect()
    assert runtime.deserialize_cuda_engine(b"no plan") is None
    assert runtime.error_recorder.errors
    runtime.error_recorder = None
    gc.collect()
    assert kept is None or kept() is None


def test_recorder_that_raises(raised):
    class Raises(Recorder):
        def report_error(self, code, desc):
            raise OSError

    runtime = trt.Runtime(QUIET)
    runtime.error_recorder = Raises()
    assert runtime.deserialize_cuda_engine(b"no plan") is None
    assert raised[0] == (OSError, "report_error")


class Allocator(trt.IGpuAllocator):
    """From NumPy's memory."""

    def __init__(self):
        trt.IGpuAllocator.__init__(self)
        self.blocks, self.calls = {}, []

    def allocate(self, size, alignment, flags):
        self.calls.append("allocate")
        memory = np.empty(size + alignment, np.uint8)
        address = (memory.ctypes.data + alignment - 1) // alignment * alignment if alignment else memory.ctypes.data
        self.blocks[address] = memory
        return address

    def deallocate(self, memory):
        self.calls.append("deallocate")
        return self.blocks.pop(memory, None) is not None

    def free(self, memory):
        self.deallocate(memory)


def test_gpu_allocator():
    allocator = Allocator()
    builder, network, config = convolution()
    plan = builder.build_serialized_network(network, config)
    runtime = trt.Runtime(LOUD)
    runtime.gpu_allocator = allocator
    with pytest.raises(AttributeError):
        runtime.gpu_allocator
    engine = runtime.deserialize_cuda_engine(plan)
    context = engine.create_execution_context()
    close(run(engine, context, x=X)["y"], Y)
    del context, engine
    if "allocate" in allocator.calls:  # what the device has no need of is not asked for
        assert allocator.calls.count("allocate") == allocator.calls.count("deallocate") and not allocator.blocks
    builder.gpu_allocator = allocator
    builder.gpu_allocator = None


def test_allocator_that_fails(raised):
    class Raises(Allocator):
        def allocate(self, size, alignment, flags):
            raise MemoryError

    class Odd(Allocator):
        def allocate(self, size, alignment, flags):
            return "no address"

    builder, network, config = convolution(QUIET)
    plan = builder.build_serialized_network(network, config)
    for allocator in (Raises(), Odd()):
        runtime = trt.Runtime(QUIET)
        runtime.gpu_allocator = allocator
        engine = runtime.deserialize_cuda_engine(plan)
        context = engine.create_execution_context() if engine else None
        assert engine is None or context is None or not raised


class OutputAllocator(trt.IOutputAllocator):
    def __init__(self):
        trt.IOutputAllocator.__init__(self)
        self.memory, self.shape, self.names = None, None, []

    def reallocate_output(self, tensor_name, memory, size, alignment):
        self.names.append(tensor_name)
        self.memory = np.zeros(size + alignment, np.uint8)
        self.at = -self.memory.ctypes.data % alignment
        return self.memory.ctypes.data + self.at

    def notify_shape(self, tensor_name, shape):
        self.shape = tuple(shape)


def test_output_allocator():
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    layer = network.add_non_zero(network.add_input("x", trt.float32, (2, 5)))
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    engine = engine_of(builder, network, builder.create_builder_config())
    context = engine.create_execution_context()
    allocator = OutputAllocator()
    assert allocator.tensorrt_version == 1
    assert context.set_output_allocator("y", allocator) and context.get_output_allocator("y") is allocator
    assert not context.set_output_allocator("nothing", allocator)
    assert context.get_max_output_size("y") >= 2 * 10 * 4
    x = np.array([[0, 1, 0, 2, 0], [3, 0, 0, 0, 4]], np.float32)
    context.set_tensor_address("x", x.ctypes.data)
    assert context.execute_async_v3(0)
    assert allocator.shape == (2, 4) and allocator.names == ["y"]
    y = allocator.memory[allocator.at : allocator.at + 32].view(np.int32).reshape(2, 4)
    np.testing.assert_array_equal(y, np.array(x.nonzero()))


def test_algorithm_selector(raised):
    class Selector(trt.IAlgorithmSelector):
        def __init__(self):
            trt.IAlgorithmSelector.__init__(self)
            self.seen, self.final = [], []

        def select_algorithms(self, context, choices):
            self.seen.append((context, choices))
            return list(range(len(choices)))

        def report_algorithms(self, contexts, choices):
            self.final = list(zip(contexts, choices))

    builder, network, config = convolution()
    selector = Selector()
    config.algorithm_selector = selector
    assert config.algorithm_selector is selector
    close(run(engine_of(builder, network, config), x=X)["y"], Y)
    assert selector.seen and selector.final
    # What was given outlives the call and the builder.
    del builder, network, config
    gc.collect()
    context, choices = selector.seen[0]
    assert context.name and context.num_inputs >= 1 and len(context.get_shape(0)) == 3
    with pytest.raises(IndexError):
        context.get_shape(99)
    algorithm = choices[0]
    assert algorithm.timing_msec >= 0 and algorithm.workspace_size >= 0 and isinstance(algorithm.algorithm_variant.tactic, int)
    info = algorithm.get_algorithm_io_info(0)
    assert isinstance(info.dtype, trt.DataType) and isinstance(info.tensor_format, trt.TensorFormat) and len(info.strides) >= 1

    class Raises(Selector):
        def select_algorithms(self, context, choices):
            raise LookupError

    class TooMany(Selector):
        def select_algorithms(self, context, choices):
            return [0] * (len(choices) + 1)

    for bad in (Raises(), TooMany()):
        raised.clear()
        builder, network, config = convolution(QUIET)
        config.algorithm_selector = bad
        assert builder.build_serialized_network(network, config) is None
        assert bool(raised) == isinstance(bad, Raises)  # a list that is too long is refused without one


def calibrator(base, **extra):
    class Calibrator(base):
        def __init__(self):
            base.__init__(self)
            self.batches = [np.ascontiguousarray(X * s) for s in (1.0, 0.5)]
            self.names, self.cache, self.held = None, None, []

        def get_batch_size(self):
            return 1

        def get_batch(self, names):
            self.names = names
            if not self.batches:
                return None
            self.held.append(self.batches.pop())
            return [self.held[-1].ctypes.data]

        def read_calibration_cache(self):
            return None

        def write_calibration_cache(self, cache):
            self.cache = cache

    for name, value in extra.items():
        setattr(Calibrator, name, value)
    return Calibrator


CALIBRATORS = {
    trt.IInt8EntropyCalibrator: trt.CalibrationAlgoType.ENTROPY_CALIBRATION,
    trt.IInt8EntropyCalibrator2: trt.CalibrationAlgoType.ENTROPY_CALIBRATION_2,
    trt.IInt8MinMaxCalibrator: trt.CalibrationAlgoType.MINMAX_CALIBRATION,
    trt.IInt8LegacyCalibrator: trt.CalibrationAlgoType.LEGACY_CALIBRATION,
}


@pytest.mark.parametrize("base", CALIBRATORS)
def test_calibrator_is_kept_and_asked(base):
    made = calibrator(base)()
    assert made.get_algorithm() == CALIBRATORS[base] and made.get_batch_size() == 1
    builder, network, config = convolution(QUIET)
    config.int8_calibrator = made
    assert config.int8_calibrator is made
    config.int8_calibrator = None
    assert config.int8_calibrator is None


def test_base_calls_are_refused():
    for base in CALIBRATORS:
        with pytest.raises(RuntimeError, match="pure virtual"):
            base.get_batch_size(calibrator(base)())


def test_objects_die_in_any_order():
    """Every order of letting go of what belongs together."""
    import itertools

    def everything():
        logger = Logger()
        builder, network, config = convolution(logger)
        plan = builder.build_serialized_network(network, config)
        runtime = trt.Runtime(logger)
        engine = runtime.deserialize_cuda_engine(plan)
        context = engine.create_execution_context()
        inspector = engine.create_engine_inspector()
        inspector.execution_context = context
        return dict(
            logger=logger,
            builder=builder,
            network=network,
            config=config,
            plan=plan,
            runtime=runtime,
            engine=engine,
            context=context,
            inspector=inspector,
            layer=network[0],
            tensor=network.get_input(0),
            profile=builder.create_optimization_profile(),
        )

    names = list(everything())
    orders = [names, names[::-1]] + [list(np.random.default_rng(i).permutation(names)) for i in range(6)]
    for order in orders:
        things = everything()
        for name in order:
            del things[name]
            gc.collect()
            for left, thing in things.items():
                {
                    "network": lambda t: t.num_layers,
                    "layer": lambda t: t.name,
                    "tensor": lambda t: t.shape,
                    "engine": lambda t: t.num_io_tensors,
                    "context": lambda t: t.get_tensor_shape("y"),
                    "plan": lambda t: bytes(t),
                    "inspector": lambda t: t.get_engine_information(trt.LayerInformationFormat.ONELINE),
                    "builder": lambda t: t.platform_has_fast_fp16,
                    "runtime": lambda t: t.num_DLA_cores,
                    "config": lambda t: t.flags,
                    "profile": bool,
                    "logger": repr,
                }[left](thing)
    assert itertools


def test_weights_live_as_long_as_the_network():
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (1, 3, 8, 8))
    layer = network.add_convolution_nd(x, 4, (3, 3), np.zeros((4, 3, 3, 3), np.float32))
    layer.padding_nd = (1, 1)
    network[0].__class__  # another object for the same layer
    again = network[0]
    again.__class__ = trt.IConvolutionLayer
    again.kernel = W.copy()
    again.bias = trt.Weights(B[::-1].copy()[::-1])  # not contiguous: copied
    del layer, again
    gc.collect()
    junk = [np.full((4, 3, 3, 3), 9, np.float32) for _ in range(50)]
    network.mark_output(network[0].get_output(0))
    network[0].get_output(0).name = "y"
    close(run(engine_of(builder, network, builder.create_builder_config()), x=X)["y"], conv2d(X, W, B, padding=1))
    assert junk


def test_nothing_is_kept_for_ever():
    """Weights, loggers and plans are freed with the last that needs them."""
    trt.Builder(LOUD)  # the process's first logger stays
    freed = []

    def watched(array, what):
        weakref.finalize(array, freed.append, what)
        return array

    class Watched(Logger):
        def __del__(self):
            freed.append("logger")

    def program():
        logger = Watched()
        builder = trt.Builder(logger)
        network = builder.create_network(1)
        x = network.add_input("x", trt.float32, (1, 3, 8, 8))
        layer = network.add_convolution_nd(x, 4, (3, 3), watched(W.copy(), "kernel"), trt.Weights(watched(B.copy(), "bias")))
        layer.kernel = watched(W.copy(), "second kernel")
        network.mark_output(layer.get_output(0))
        config = builder.create_builder_config()
        runtime = trt.Runtime(logger)
        engine = runtime.deserialize_cuda_engine(builder.build_serialized_network(network, config))
        assert not freed
        return engine.create_execution_context()

    context = program()
    gc.collect()
    assert sorted(freed) == ["bias", "kernel", "second kernel"]
    assert context.engine.num_io_tensors == 2
    del context
    gc.collect()
    assert freed[-1] == "logger"


def test_what_is_replaced_is_let_go():
    """Profilers, allocators, calibrators and selectors live until another takes their place, or with what uses them; an engine's
    allocator as long as the engine."""

    class Profiler(trt.IProfiler):
        def report_layer_time(self, layer_name, ms):
            pass

    class Calibrator(trt.IInt8EntropyCalibrator2):
        pass

    class Selector(trt.IAlgorithmSelector):
        pass

    alive = weakref.WeakSet()

    def new(kind):
        made = kind()
        alive.add(made)
        return made

    def count(kind):
        gc.collect()
        return sum(type(each) is kind for each in alive)

    builder, network, config = convolution()
    runtime = trt.Runtime(LOUD)
    engine = runtime.deserialize_cuda_engine(builder.build_serialized_network(network, config))
    context = engine.create_execution_context()
    places = (
        (context, "profiler", Profiler),
        (context, "temporary_allocator", Allocator),
        (config, "int8_calibrator", Calibrator),
        (config, "algorithm_selector", Selector),
        (builder, "gpu_allocator", Allocator),
        (runtime, "gpu_allocator", Allocator),
    )
    for owner, name, kind in places:
        before = count(kind)
        for _ in range(3):
            setattr(owner, name, new(kind))
            assert count(kind) == before + 1, name
        if name != "gpu_allocator":
            assert type(getattr(owner, name)) is kind
        setattr(owner, name, None)
        assert count(kind) == before, name
    for name in ("y", "y", "x", "none"):
        context.set_output_allocator(name, new(OutputAllocator))
        assert count(OutputAllocator) == 1 and type(context.get_output_allocator("y")) is OutputAllocator
    context.set_output_allocator("y", None)
    assert count(OutputAllocator) == 0
    context.profiler, config.int8_calibrator = new(Profiler), new(Calibrator)
    del context, config, owner, places
    assert count(Profiler) == 0 and count(Calibrator) == 0
    runtime.gpu_allocator = new(Allocator)
    engine = runtime.deserialize_cuda_engine(engine.serialize())
    runtime.gpu_allocator = None
    assert count(Allocator) == 1
    close(run(engine, engine.create_execution_context(), x=X)["y"], Y)
    del engine
    assert count(Allocator) == 0


def test_parser_and_network_die_in_any_order():
    from models import Resnet

    model = Resnet().model()
    for first in ("parser", "network", "builder"):
        builder = trt.Builder(LOUD)
        network = builder.create_network(1)
        parser = trt.OnnxParser(network, LOUD)
        assert parser.parse(model)
        if first == "parser":
            del parser
            gc.collect()
            assert builder.build_serialized_network(network, builder.create_builder_config()) is not None
        elif first == "network":
            layers = network.num_layers
            del network
            gc.collect()
            assert parser.num_errors == 0 and layers
            assert not parser.parse(b"no model") and parser.num_errors
        else:
            del builder
            gc.collect()
            assert network.num_layers


def test_other_threads_run_during_a_build():
    """The GIL is free: a thread counts while the library works, and its logger is called from other threads."""
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    thread = threading.Thread(target=count)
    builder, network, config = convolution(Logger(), shape=(1, 3, 64, 64))
    thread.start()
    try:
        before = counted[0]
        assert builder.build_serialized_network(network, config) is not None
        during = counted[0] - before
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(switch)
    assert during > 1000


def test_contexts_in_threads():
    engine = engine_of(*convolution())
    errors = []

    def work(seed):
        try:
            x = np.random.default_rng(seed).standard_normal((1, 3, 8, 8)).astype(np.float32)
            expected = np.maximum(conv2d(x, W, B, padding=1), 0)
            context = engine.create_execution_context()
            for _ in range(20):
                close(run(engine, context, x=x)["y"], expected)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_objects_at_the_end_of_python(tmp_path):
    """A program that ends with everything alive, in globals, cycles and threads, ends in silence."""
    import subprocess

    script = tmp_path / "ends.py"
    script.write_text(
        "import tensorrt as trt, sys\n"
        f"sys.path.insert(0, {str(__import__('pathlib').Path(__file__).parent)!r})\n"
        "from small import *\n"
        "class Logger(trt.ILogger):\n"
        "    def __init__(self): trt.ILogger.__init__(self); self.builder = None; self.n = 0\n"
        "    def log(self, severity, msg): self.n += 1\n"
        "logger = Logger(); things = convolution(logger); logger.builder = things[0]\n"
        "engine = engine_of(*things, logger); context = engine.create_execution_context()\n"
        "print('ran', run(engine, context, x=np.ones((1, 3, 8, 8), np.float32))['y'].shape)\n"
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout == "ran (1, 4, 8, 8)\n" and result.stderr == ""


def test_python_ends_while_threads_run(tmp_path):
    """Threads that are inside of a run, or called back from one, when Python ends: the process ends as it should."""
    import subprocess

    script = tmp_path / "ends.py"
    script.write_text(
        "import tensorrt as trt, sys, threading, time\n"
        f"sys.path.insert(0, {str(__import__('pathlib').Path(__file__).parent)!r})\n"
        "from small import *\n"
        "things = convolution(LOUD); engine = engine_of(*things, LOUD); x = np.ones((1, 3, 8, 8), np.float32)\n"
        "class Profiler(trt.IProfiler):\n"
        "    def report_layer_time(self, layer_name, ms): pass\n"
        "def work(profiler):\n"
        "    context, y = engine.create_execution_context(), np.zeros((1, 4, 8, 8), np.float32)\n"
        "    context.profiler = profiler\n"
        "    context.set_tensor_address('x', x.ctypes.data), context.set_tensor_address('y', y.ctypes.data)\n"
        "    while True: context.execute_async_v3(0)\n"
        "for i in range(6): threading.Thread(target=work, args=(Profiler() if i % 2 else None,), daemon=True).start()\n"
        "time.sleep(float(sys.argv[1]))\n"
    )
    for turn in range(6):
        result = subprocess.run([sys.executable, script, str(0.05 + 0.01 * turn)], capture_output=True, text=True, timeout=120)
        assert result.returncode == 0 and result.stderr == "", (turn, result)
