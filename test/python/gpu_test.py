# SPDX-License-Identifier: Apache-2.0
"""The module on a GPU: streams and memory of torch, CuPy and cuda-bindings, against the same network's numbers on the CPU.
scripts/gpu/python.sh runs it where there is a GPU."""

import json
import threading

import numpy as np
import pytest
import tensorrt as trt
import tensorwright
from tensorrt import _machine
from tensorwright import _memory

from models import Resnet, close
from small import B, LOUD, QUIET, W, convolution, engine_of, run

if not _machine.gpus():
    pytest.skip("there is no GPU", allow_module_level=True)

GPU = "cuda:0"
RANDOM = np.random.default_rng(11)


def wide(shape=(-1, 3, 8, 8)):
    """convolution() of any batch up to 16."""
    builder, network, config = convolution(shape=shape)
    profile = builder.create_optimization_profile()
    profile.set_shape("x", *[(n, *shape[1:]) for n in (1, 4, 16)])
    config.add_optimization_profile(profile)
    return builder, network, config


def engines(make=convolution, tf32=False, **options):
    """(on the GPU, on the CPU) of one network."""
    result = []
    for device in (GPU, "cpu"):
        with _memory.chosen(device):
            builder, network, config = make(**options)
            if not tf32:  # which 8.5 permits by default
                config.clear_flag(trt.BuilderFlag.TF32)
            result.append(engine_of(builder, network, config))
    return result


@pytest.fixture(scope="module")
def plans():
    return [bytes(engine.serialize()) for engine in engines(wide)]


@pytest.fixture
def pair(plans):
    """Engines of each test's own: what a test left would hold their profile."""
    result = []
    for device, plan in zip((GPU, "cpu"), plans):
        with _memory.chosen(device):
            result.append(trt.Runtime(LOUD).deserialize_cuda_engine(plan))
    return result


def expected(engine, x):
    context = engine.create_execution_context()
    return run(engine, context, x=x)["y"]


def batch(n):
    return RANDOM.standard_normal((n, 3, 8, 8)).astype(np.float32)


class Torch:
    """Arrays and streams of torch."""

    def __init__(self):
        self.torch = pytest.importorskip("torch")

    def array(self, x):
        return self.torch.from_numpy(x).cuda()

    def empty(self, shape):
        return self.torch.full(shape, -7.0, device="cuda")

    def address(self, array):
        return array.data_ptr()

    def stream(self):
        return self.torch.cuda.Stream()

    def number(self, stream):
        return stream.cuda_stream

    def wait(self, stream):
        stream.synchronize()

    def numpy(self, array):
        return array.cpu().numpy()


class CuPy:
    """Those of CuPy."""

    def __init__(self):
        self.cupy = pytest.importorskip("cupy")

    def array(self, x):
        return self.cupy.asarray(x)

    def empty(self, shape):
        return self.cupy.full(shape, -7, np.float32)

    def address(self, array):
        return array.data.ptr

    def stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)

    def number(self, stream):
        return stream.ptr

    def wait(self, stream):
        stream.synchronize()

    def numpy(self, array):
        return array.get()


class Bindings:
    """Those of cuda-bindings: handles as they are, without int()."""

    def __init__(self):
        self.cudart = pytest.importorskip("cuda.bindings.runtime")

    def ok(self, answer):
        assert int(answer[0]) == 0, answer
        return answer[1] if len(answer) > 1 else None

    def array(self, x):
        address = self.ok(self.cudart.cudaMalloc(x.nbytes))
        kind = self.cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
        self.ok(self.cudart.cudaMemcpy(address, x.ctypes.data, x.nbytes, kind))
        return address, x.shape

    def empty(self, shape):
        return self.array(np.full(shape, -7, np.float32))

    def address(self, array):
        return array[0]

    def stream(self):
        return self.ok(self.cudart.cudaStreamCreateWithFlags(self.cudart.cudaStreamNonBlocking))

    def number(self, stream):
        return stream

    def wait(self, stream):
        self.ok(self.cudart.cudaStreamSynchronize(stream))

    def numpy(self, array):
        result = np.empty(array[1], np.float32)
        kind = self.cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self.ok(self.cudart.cudaMemcpy(result.ctypes.data, array[0], result.nbytes, kind))
        return result


@pytest.fixture(params=[Torch, CuPy, Bindings])
def cuda(request):
    return request.param()


def sync():
    """All of the device: what one library's stream wrote another's non-blocking one is to see."""
    with _memory.chosen(GPU):
        driver = _memory.memory_of(GPU)
        driver.call("cuCtxSynchronize")


def test_streams_and_pointers(pair, cuda):
    gpu, cpu = pair
    context, stream = gpu.create_execution_context(), cuda.stream()
    for n in (1, 5, 16, 2):
        x = batch(n)
        given, y = cuda.array(x), cuda.empty((n, 4, 8, 8))
        sync()
        assert context.set_input_shape("x", x.shape)
        assert context.set_tensor_address("x", cuda.address(given)) and context.set_tensor_address("y", cuda.address(y))
        assert context.execute_async_v3(cuda.number(stream))
        cuda.wait(stream)
        close(cuda.numpy(y), expected(cpu, x))
    assert context.execute_async_v3(stream_handle=cuda.number(stream))
    cuda.wait(stream)
    close(cuda.numpy(y), expected(cpu, x))


def test_tf32():
    gpu, cpu = engines(tf32=True)
    x = batch(1)
    y = tensorwright.Model(gpu.serialize(), GPU)(x)
    close(y, expected(cpu, x), 1e-2)  # eleven bits, 27 products of a sum
    assert gpu.num_layers


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_bindings(pair, cuda):
    gpu, cpu = pair
    context, stream, x = gpu.create_execution_context(), cuda.stream(), batch(3)
    assert context.set_binding_shape(0, x.shape)
    for call in ("execute_v2", "execute_async_v2"):
        given, y = cuda.array(x), cuda.empty((3, 4, 8, 8))
        sync()
        bindings = [cuda.address(given), cuda.address(y)]
        more = (cuda.number(stream),) if call == "execute_async_v2" else ()
        assert getattr(context, call)(bindings, *more)
        cuda.wait(stream)
        close(cuda.numpy(y), expected(cpu, x))


def test_the_order_of_a_stream():
    """Runs among torch's own work on one stream, without a wait between."""
    torch = pytest.importorskip("torch")
    gpu, cpu = engines()
    context, x = gpu.create_execution_context(), batch(1)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        given, y = torch.zeros(1, 3, 8, 8, device="cuda"), torch.zeros(1, 4, 8, 8, device="cuda")
        context.set_tensor_address("x", given.data_ptr()), context.set_tensor_address("y", y.data_ptr())
        sums = torch.zeros_like(y)
        for i in range(50):
            given.copy_(torch.from_numpy(x * i))
            assert context.execute_async_v3(stream.cuda_stream)
            sums += y
    stream.synchronize()
    total = sum(expected(cpu, x * np.float32(i)).astype(np.float64) for i in range(50))
    close(sums.cpu().numpy(), total, 1e-3)


def test_torch_captures_runs():
    torch = pytest.importorskip("torch")
    gpu, cpu = engines()
    context = gpu.create_execution_context()
    given, y = torch.zeros(1, 3, 8, 8, device="cuda"), torch.zeros(1, 4, 8, 8, device="cuda")
    context.set_tensor_address("x", given.data_ptr()), context.set_tensor_address("y", y.data_ptr())
    stream = torch.cuda.Stream()
    assert context.execute_async_v3(stream.cuda_stream)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        assert context.execute_async_v3(torch.cuda.current_stream().cuda_stream)
    for _ in range(3):
        x = batch(1)
        given.copy_(torch.from_numpy(x))
        graph.replay()
        torch.cuda.synchronize()
        close(y.cpu().numpy(), expected(cpu, x))


def test_consumed_event_and_profiler(pair):
    torch = pytest.importorskip("torch")
    gpu, cpu = pair
    context, x = gpu.create_execution_context(), batch(4)
    given, y = torch.from_numpy(x).cuda(), torch.zeros(4, 4, 8, 8, device="cuda")
    context.set_input_shape("x", x.shape)
    context.set_tensor_address("x", given.data_ptr()), context.set_tensor_address("y", y.data_ptr())
    event, stream = torch.cuda.Event(), torch.cuda.Stream()
    event.record(stream)  # torch makes the event when it is first used
    torch.cuda.synchronize()
    assert context.set_input_consumed_event(event.cuda_event) and context.get_input_consumed_event() == event.cuda_event
    assert context.execute_async_v3(stream.cuda_stream)
    event.synchronize()
    given.fill_(float("nan"))
    stream.synchronize()
    close(y.cpu().numpy(), expected(cpu, x))

    class Profiler(trt.IProfiler):
        def __init__(self):
            super().__init__()
            self.times = {}

        def report_layer_time(self, layer_name, ms):
            self.times[layer_name] = ms

    context.profiler = profiler = Profiler()
    assert context.execute_async_v3(stream.cuda_stream)
    stream.synchronize()
    assert profiler.times and sum(profiler.times.values()) > 0


def test_sizes_that_data_decide():
    """The output allocator gives torch's memory."""
    torch = pytest.importorskip("torch")

    def nonzero():
        builder = trt.Builder(LOUD)
        network = builder.create_network(1)
        x = network.add_input("x", trt.float32, (4, 9))
        y = network.add_non_zero(x).get_output(0)
        y.name = "y"
        network.mark_output(y)
        return builder, network, builder.create_builder_config()

    class Allocator(trt.IOutputAllocator):
        def __init__(self):
            super().__init__()
            self.memory, self.shape = None, None

        def reallocate_output(self, name, memory, size, alignment):
            self.memory = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
            return self.memory.data_ptr()

        def notify_shape(self, name, shape):
            self.shape = tuple(shape)

    gpu, _ = engines(nonzero)
    context, allocator, stream = gpu.create_execution_context(), Allocator(), torch.cuda.Stream()
    context.set_output_allocator("y", allocator)
    for share in (0.4, 0.0, 1.0, 0.1):
        x = (RANDOM.random((4, 9)) < share).astype(np.float32)
        given = torch.from_numpy(x).cuda()
        torch.cuda.synchronize()
        context.set_tensor_address("x", given.data_ptr())
        assert context.execute_async_v3(stream.cuda_stream)
        stream.synchronize()
        rows = np.array(np.nonzero(x), np.int32)
        assert allocator.shape == rows.shape
        got = allocator.memory[: rows.nbytes].view(torch.int32).cpu().numpy() if rows.size else rows.ravel()
        np.testing.assert_array_equal(got.reshape(rows.shape), rows)


def test_allocator_in_python():
    torch = pytest.importorskip("torch")

    class Allocator(trt.IGpuAllocator):
        def __init__(self):
            super().__init__()
            self.held, self.most = {}, 0

        def allocate(self, size, alignment, flags):
            memory = torch.empty(size + alignment, dtype=torch.uint8, device="cuda")
            address = memory.data_ptr() + (-memory.data_ptr() % max(alignment, 1))
            self.held[address] = memory
            self.most = max(self.most, len(self.held))
            return address

        def free(self, memory):
            self.held.pop(memory, None)

        def deallocate(self, memory):
            return self.held.pop(memory, None) is not None

        def reallocate(self, address, alignment, new_size):
            return None

    x, allocator = batch(1), Allocator()
    with _memory.chosen(GPU):
        builder, network, config = convolution()
        config.clear_flag(trt.BuilderFlag.TF32)
        plan = builder.build_serialized_network(network, config)
        runtime = trt.Runtime(LOUD)
    runtime.gpu_allocator = allocator
    engine = runtime.deserialize_cuda_engine(plan)
    context = engine.create_execution_context()
    assert allocator.most > 0
    given, y = torch.from_numpy(x).cuda(), torch.zeros(1, 4, 8, 8, device="cuda")
    context.set_tensor_address("x", given.data_ptr()), context.set_tensor_address("y", y.data_ptr())
    torch.cuda.synchronize()
    assert context.execute_async_v3(0)
    torch.cuda.synchronize()
    _, cpu = engines()
    close(y.cpu().numpy(), expected(cpu, x))
    del context, engine, runtime
    assert not allocator.held


def test_refit():
    with _memory.chosen(GPU):
        builder, network, config = convolution(flags=[trt.BuilderFlag.REFIT])
        config.clear_flag(trt.BuilderFlag.TF32)
        engine = engine_of(builder, network, config)
    refitter = trt.Refitter(engine, LOUD)
    w, b = W[::-1].copy(), B * 2
    assert refitter.set_weights("conv", trt.WeightsRole.KERNEL, w) and refitter.set_weights("conv", trt.WeightsRole.BIAS, b)
    assert refitter.refit_cuda_engine()
    x = batch(1)
    from models import conv2d

    model = tensorwright.Model(engine.serialize(), GPU)
    close(model(x), np.maximum(conv2d(x, w, b, padding=1), 0), 1e-3)


def test_calibration_by_device_memory():
    torch = pytest.importorskip("torch")
    net = Resnet(batch=4, size=16)
    batches = [RANDOM.standard_normal(net.shape).astype(np.float32) for _ in range(4)]

    class Calibrator(trt.IInt8EntropyCalibrator2):
        def __init__(self):
            super().__init__()
            self.left, self.memory, self.cache = list(batches), None, None

        def get_batch_size(self):
            return 4

        def get_batch(self, names):
            if not self.left:
                return None
            self.memory = torch.from_numpy(self.left.pop(0)).cuda()
            torch.cuda.synchronize()
            return [self.memory.data_ptr()]

        def read_calibration_cache(self):
            return None

        def write_calibration_cache(self, cache):
            self.cache = bytes(cache)

    caches = []
    for device in (GPU, "cpu"):
        with _memory.chosen(device):
            builder = trt.Builder(LOUD)
            network = builder.create_network(1)
            parser = trt.OnnxParser(network, LOUD)
            assert parser.parse(net.model())
            config = builder.create_builder_config()
            config.set_flag(trt.BuilderFlag.INT8)
            config.int8_calibrator = calibrator = Calibrator()
            if device == "cpu":
                left = list(batches)
                calibrator.get_batch = lambda names: [left.pop(0).ctypes.data] if left else None
            plan = builder.build_serialized_network(network, config)
            assert plan is not None
            caches.append(calibrator.cache.decode().splitlines())
            if device == GPU:
                y = tensorwright.Model(plan, GPU)(batches[0])
    assert len(caches[0]) == len(caches[1]) > 5 and caches[0][1].split(":")[0] == caches[1][1].split(":")[0]
    assert np.argmax(y, 1).tolist() == np.argmax(net.answer(batches[0]), 1).tolist()


def test_threads_with_streams_of_their_own():
    torch = pytest.importorskip("torch")
    gpu, cpu = engines()
    failures = []

    def work(seed):
        try:
            x = np.random.default_rng(seed).standard_normal((1, 3, 8, 8)).astype(np.float32)
            context, stream = gpu.create_execution_context(), torch.cuda.Stream()
            given, y = torch.from_numpy(x).cuda(), torch.zeros(1, 4, 8, 8, device="cuda")
            torch.cuda.synchronize()
            context.set_tensor_address("x", given.data_ptr()), context.set_tensor_address("y", y.data_ptr())
            for _ in range(200):
                assert context.execute_async_v3(stream.cuda_stream)
            stream.synchronize()
            close(y.cpu().numpy(), expected(cpu, x))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@pytest.mark.parametrize("precision,tolerance", [("fp32", 2e-3), ("fp16", 2e-2), ("best", 2e-2)])
def test_compile(precision, tolerance):
    net = Resnet(batch=2, size=32)
    model = tensorwright.compile(net.model(), precision=precision, device="cuda", cache=False)
    x = RANDOM.standard_normal(net.shape).astype(np.float32)
    assert model.device == GPU
    np.testing.assert_allclose(model(x), net.answer(x), atol=tolerance)
    assert model.profile(x, runs=3) and model.compare(x, reference={"prob": net.answer(x)})["prob"]["cosine"] > 0.99
    torch = pytest.importorskip("torch")
    y = model(torch.from_numpy(x).cuda())
    np.testing.assert_allclose(y.numpy(), net.answer(x), atol=tolerance)


def test_an_open_batch():
    net = Resnet(size=16)
    rest = net.shape[1:]
    shapes = {"input": ((1, *rest), (2, *rest), (8, *rest))}
    model = tensorwright.compile(net.model(True), shapes, device="cuda", cache=False)
    for n in (1, 8, 3):
        x = RANDOM.standard_normal((n, *rest)).astype(np.float32)
        np.testing.assert_allclose(model(x), net.answer(x), atol=2e-3)
    with pytest.raises(ValueError, match="from .1, 3, 16, 16. to .8, 3, 16, 16."):
        model(np.zeros((9, *rest), np.float32))


def test_inspector_and_plans():
    gpu, cpu = engines()
    report = json.loads(gpu.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert report["Layers"]
    # A plan is for one kind of device, and says so.
    with _memory.chosen("cpu"):
        refused = trt.Runtime(QUIET).deserialize_cuda_engine(gpu.serialize())
    assert refused is None or refused.num_layers


def test_serving(tmp_path):
    pytest.importorskip("aiohttp")
    pytest.importorskip("prometheus_client")
    from concurrent.futures import ThreadPoolExecutor

    from serving import ask, binary, served
    from tensorwright.serve import Options

    net = Resnet(size=16)
    rest = net.shape[1:]
    shapes = {"input": ((1, *rest), (4, *rest), (8, *rest))}
    tensorwright.compile(net.model(True), shapes, device="cuda", cache=False).save(tmp_path / "net.plan")
    with served(tmp_path / "net.plan", grpc_port=None, options=Options(device="cuda", batch=8, instances=2)) as server:

        def one(seed):
            x = np.random.default_rng(seed).standard_normal((1 + seed % 3, *rest)).astype(np.float32)
            body, headers = binary({"input": ("FP32", x)}, parameters={"binary_data_output": True})
            status, headers, data = ask(server, "POST", "/v2/models/net/infer", body, headers)
            assert status == 200, data
            y = np.frombuffer(data[int(headers["Inference-Header-Content-Length"]) :], np.float32)
            np.testing.assert_allclose(y.reshape(len(x), 10), net.answer(x), atol=2e-3)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(40)))
