# SPDX-License-Identifier: Apache-2.0
"""tensorwright serve asked by tritonclient, over HTTP, gRPC and in shared memory."""

import asyncio
import os
import queue
import random

import numpy as np
import pytest

for module in ("aiohttp", "prometheus_client", "grpc", "tritonclient.http", "tritonclient.grpc"):
    pytest.importorskip(module, reason=f"SKIP: {module} is not installed")

import tritonclient.grpc as triton_grpc  # noqa: E402
import tritonclient.http as triton_http  # noqa: E402
from tritonclient.grpc import service_pb2  # noqa: E402
from tritonclient.utils import InferenceServerException, np_to_triton_dtype, shared_memory  # noqa: E402

from serving import affine, network, served  # noqa: E402
from tensorwright.serve import Limits, Options, rpc  # noqa: E402
from tensorwright.serve.tensors import RequestError  # noqa: E402

import tensorrt as trt  # noqa: E402

CLIENTS = {"http": triton_http, "grpc": triton_grpc}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    (folder / "scale.plan").write_bytes(affine(2, 1))

    def two(net, a, b):
        rows = net.add_elementwise(a, a, trt.ElementWiseOperation.SUM).get_output(0)
        return {"sum": rows, "not": net.add_unary(b, trt.UnaryOperation.NOT).get_output(0)}

    (folder / "two.plan").write_bytes(network(two, {"a": (trt.int32, (2, 3)), "b": (trt.bool, (4,))}))
    options = Options(batch_delay=0.005)
    with served(folder, options=options, shared_memory=True, control=True, limits=Limits(request_bytes=1 << 20)) as server:
        yield server


@pytest.fixture(params=CLIENTS)
def client(request, server):
    """The client, with `kind`, its module."""
    kind = CLIENTS[request.param]
    client = kind.InferenceServerClient(f"127.0.0.1:{getattr(server, request.param)}")
    client.kind = kind
    yield client
    client.close()


def given(client, **arrays):
    inputs = []
    for name, array in arrays.items():
        inputs.append(client.kind.InferInput(name, array.shape, np_to_triton_dtype(array.dtype)))
        inputs[-1].set_data_from_numpy(array)
    return inputs


X = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)


def field(message, name):
    """Of JSON or of a message."""
    return message[name] if isinstance(message, dict) else getattr(message, name)


def test_about(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("two", "1")
    assert not client.is_model_ready("none") and not client.is_model_ready("two", "2")
    assert field(client.get_server_metadata(), "name") == "tensorwright"
    about = client.get_model_metadata("two")
    assert [field(t, "datatype") for t in field(about, "inputs")] == ["INT32", "BOOL"]
    assert [list(map(int, field(t, "shape"))) for t in field(about, "outputs")] == [[2, 3], [4]]
    config = client.get_model_config("scale")
    config = config if isinstance(config, dict) else config.config
    assert field(config, "max_batch_size") == 0 and list(field(field(config, "input")[0], "dims")) == [-1, 5]
    with pytest.raises(InferenceServerException, match="there is no model 'none'"):
        client.get_model_metadata("none")


def test_infer(client):
    np.testing.assert_array_equal(client.infer("scale", given(client, x=X)).as_numpy("y"), 2 * X + 1)
    a, b = np.arange(6, dtype=np.int32).reshape(2, 3), np.array([True, False, False, True])
    inputs = given(client, b=b, a=a)
    both = client.infer("two", inputs, request_id="7")
    np.testing.assert_array_equal(both.as_numpy("sum"), 2 * a)
    np.testing.assert_array_equal(both.as_numpy("not"), ~b)
    assert field(both.get_response(), "id") == "7"
    one = client.infer("two", inputs, outputs=[client.kind.InferRequestedOutput("not")])
    assert one.as_numpy("sum") is None and one.as_numpy("not").tolist() == (~b).tolist()
    wide = given(client, a=a.astype(np.int64), b=b)
    np.testing.assert_array_equal(client.infer("two", wide).as_numpy("sum"), 2 * a)
    options = {"compression_algorithm": "gzip"} if client.kind is triton_grpc else {"request_compression_algorithm": "gzip"}
    np.testing.assert_array_equal(client.infer("scale", given(client, x=X), **options).as_numpy("y"), 2 * X + 1)
    stats = client.get_inference_statistics("two")
    assert int(field(field(stats, "model_stats")[0], "inference_count")) >= 3


@pytest.mark.parametrize(
    "model,arrays,text",
    [
        ("none", {"x": X}, "there is no model"),
        ("scale", {"x": X[:, :4]}, r"input 'x' has the shape \[3, 4\], the model takes \[-1, 5\], from \[1, 5\] to \[16, 5\]"),
        ("scale", {"x": X.astype(np.float64)}, "FP64 is taken by no engine"),
        ("scale", {"x": np.array([b"a", b"b"], np.object_)}, "BYTES is taken by no engine"),
        ("scale", {"x": X.astype(np.int32)}, "is INT32, the model takes FP32"),
        ("scale", {"z": X}, "no input 'z'"),
        ("scale", {}, "input 'x' is missing"),
        ("two", {"a": np.full((2, 3), 2**40), "b": np.ones(4, bool)}, "do not fit into INT32"),
    ],
)
def test_failures(client, model, arrays, text):
    with pytest.raises(InferenceServerException, match=text):
        client.infer(model, given(client, **arrays))


def test_http_without_bytes(server):
    with triton_http.InferenceServerClient(f"127.0.0.1:{server.http}") as client:
        x = triton_http.InferInput("x", X.shape, "FP32")
        x.set_data_from_numpy(X, binary_data=False)
        outputs = [triton_http.InferRequestedOutput("y", binary_data=False)]
        np.testing.assert_allclose(client.infer("scale", [x], outputs=outputs).as_numpy("y"), 2 * X + 1, rtol=1e-6)
        results = [client.async_infer("scale", [x]) for _ in range(5)]
        assert all(np.allclose(r.get_result().as_numpy("y"), 2 * X + 1) for r in results)


def test_shared_memory(client):
    name = f"tw_{os.getpid()}"
    size = X.nbytes
    region = shared_memory.create_shared_memory_region("both", f"/{name}", 2 * size + 8)
    try:
        shared_memory.set_shared_memory_region(region, [X], offset=8)
        client.register_system_shared_memory("both", f"/{name}", size + size, offset=8)
        x, y = client.kind.InferInput("x", X.shape, "FP32"), client.kind.InferRequestedOutput("y")
        x.set_shared_memory("both", size)
        y.set_shared_memory("both", size, offset=size)
        result = client.infer("scale", [x], outputs=[y])
        assert list(map(int, field(result.get_output("y"), "shape"))) == [3, 5]
        got = shared_memory.get_contents_as_numpy(region, np.float32, X.shape, offset=8 + size)
        np.testing.assert_array_equal(got, 2 * X + 1)
        status = client.get_system_shared_memory_status()
        rows = status if isinstance(status, list) else list(status.regions.values())
        assert [int(field(row, "byte_size")) for row in rows] == [2 * size] and field(rows[0], "key") == f"/{name}"
        right = {"x": ("both", size, 0), "y": ("both", size, size)}
        for change, text in (
            ({"x": ("none", size, 0)}, "no shared memory region is called 'none'"),
            ({"x": ("both", size, size + 1)}, "lie outside"),
            ({"x": ("both", size - 1, 0)}, "has 59 bytes in shared memory"),
            ({"y": ("both", size - 1, size)}, "are its place"),
            ({"y": ("both", size, 2 * size)}, "lie outside"),
            ({"y": ("none", size, 0)}, "no shared memory region is called 'none'"),
        ):
            x, y = client.kind.InferInput("x", X.shape, "FP32"), client.kind.InferRequestedOutput("y")
            for tensor, place in ((x, {**right, **change}["x"]), (y, {**right, **change}["y"])):
                tensor.set_shared_memory(*place)
            with pytest.raises(InferenceServerException, match=text):
                client.infer("scale", [x], outputs=[y])
        # A client that cuts its region off, which would end a server that maps it.
        x, y = client.kind.InferInput("x", X.shape, "FP32"), client.kind.InferRequestedOutput("y")
        x.set_shared_memory(*right["x"]), y.set_shared_memory(*right["y"])
        for left, text in ((8 + size, "made smaller"), (0, "made smaller")):
            os.truncate(f"/dev/shm/{name}", left)
            with pytest.raises(InferenceServerException, match=text):
                client.infer("scale", [x], outputs=[y])
        for new, key, text in (
            ("new", "/../passwd", "no key"),
            ("new", "/none-" + name, "cannot be opened"),
            ("both", "/" + name, "registered already"),
        ):
            with pytest.raises(InferenceServerException, match=text):
                client.register_system_shared_memory(new, key, 8)
        client.unregister_system_shared_memory("both")
        with pytest.raises(InferenceServerException, match="lie outside"):
            client.register_system_shared_memory("both", f"/{name}", size)
        client.unregister_system_shared_memory()
        assert client.is_server_live()
    finally:
        client.unregister_system_shared_memory()
        shared_memory.destroy_shared_memory_region(region)


def test_control(client):
    assert sorted(field(row, "name") for row in index_of(client)) == ["scale", "two"]
    client.unload_model("two")
    assert not client.is_model_ready("two") and [field(row, "name") for row in index_of(client)] == ["scale"]
    client.load_model("two")
    assert client.is_model_ready("two")
    for call in (client.load_model, client.unload_model):
        with pytest.raises(InferenceServerException, match="'none'"):
            call("none")
    with pytest.raises(InferenceServerException, match="serve.json"):
        client.load_model("two", config="{}")


def index_of(client):
    index = client.get_model_repository_index()
    return index if isinstance(index, list) else index.models


def test_a_stream(server):
    answers = queue.Queue()
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc}") as client:
        client.kind = triton_grpc
        client.start_stream(lambda result, error: answers.put((result, error)))
        for i in range(100):
            client.async_stream_infer("scale" if i % 10 else "none", given(client, x=X + i), request_id=str(i))
        for i in range(100):
            result, error = answers.get(timeout=30)
            if i % 10 == 0:
                assert "there is no model 'none'" in str(error)
            else:
                assert result.get_response().id == str(i)
                np.testing.assert_array_equal(result.as_numpy("y"), 2 * (X + i) + 1)
        client.stop_stream()


def test_a_large_request_is_refused(client):
    with pytest.raises(InferenceServerException, match="limit|larger than max"):
        client.infer("scale", given(client, x=np.zeros((100000, 5), np.float32)))
    assert client.is_server_live()


def test_typed_contents_and_bad_messages(server):
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{server.grpc}") as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
            response_deserializer=service_pb2.ModelInferResponse.FromString,
        )
        message = service_pb2.ModelInferRequest(model_name="two")
        message.inputs.add(name="a", datatype="INT32", shape=[2, 3]).contents.int_contents.extend(range(6))
        message.inputs.add(name="b", datatype="BOOL", shape=[4]).contents.bool_contents.extend([True] * 4)
        answer = call(message)
        assert np.frombuffer(answer.raw_output_contents[0], np.int32).tolist() == [0, 2, 4, 6, 8, 10]
        message.raw_input_contents.append(b"")
        broken = (b"\xff" * 40, "these bytes are no ModelInferRequest")
        for bad, text in ((message, "contents beside raw_input_contents"), broken):
            with pytest.raises(grpc.RpcError) as error:
                call(bad)
            assert text in error.value.details() and error.value.code() != grpc.StatusCode.OK
        assert call(service_pb2.ModelInferRequest(model_name="two", inputs=message.inputs)).model_version == "1"


def test_fuzz_of_messages(server):
    """Whatever message comes is a request or a sentence of what is wrong with it."""
    seed, count = int(os.environ.get("TW_SEED", 1)), int(os.environ.get("TW_COUNT", 3000))
    rng, taken, broken = random.Random(seed), 0, 0
    raw = service_pb2.ModelInferRequest(model_name="scale", raw_input_contents=[X[:1].tobytes()])
    raw.inputs.add(name="x", datatype="FP32", shape=[1, 5]).parameters["binary"].bool_param = True
    raw.outputs.add(name="y").parameters["shared_memory_region"].string_param = "r"
    raw.parameters["timeout"].int64_param = 9
    typed = service_pb2.ModelInferRequest(model_name="scale")
    typed.inputs.add(name="x", datatype="FP32", shape=[1, 5]).contents.fp32_contents.extend([1, 2, 3, 4, 5])
    kind = rpc.message_factory.GetMessageClass(rpc._service().FindMethodByName("ModelInfer").input_type)
    for i in range(count):
        data = bytearray(rng.choice([raw, typed]).SerializeToString())
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
        try:
            message = kind.FromString(bytes(data))
        except Exception:  # protobuf's own, before the server's parser
            broken += 1
            continue
        try:
            rpc.parse(server.core, message, asyncio.run(rpc.typed_contents(message)))
            taken += 1
        except RequestError as error:
            assert 400 <= error.status < 504
        except Exception as error:
            raise AssertionError(f"TW_SEED={seed}: message {i} {bytes(data)!r}: {error!r}") from error
    assert 20 < taken < count - broken - 20


def test_messages_are_the_published_ones():
    """Every field of kserve.proto has the number, type and place that tritonclient's messages have."""
    service = rpc._service()
    theirs = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name
    seen, fields = set(), 0

    def same(ours, published):
        nonlocal fields
        if ours.full_name in seen:
            return
        seen.add(ours.full_name)
        assert ours.full_name == published.full_name
        for f in ours.fields:
            g = published.fields_by_name[f.name]
            assert (f.number, f.type, f.is_repeated) == (g.number, g.type, g.is_repeated), f.full_name
            assert (f.containing_oneof is None) == (g.containing_oneof is None), f.full_name
            fields += 1
            if f.message_type:
                same(f.message_type, g.message_type)
            if f.enum_type:
                numbers = {v.name: v.number for v in g.enum_type.values}
                assert all(numbers[v.name] == v.number for v in f.enum_type.values)

    for method in service.methods:
        published = theirs[method.name]
        same(method.input_type, published.input_type)
        same(method.output_type, published.output_type)
        flags = method.client_streaming, method.server_streaming
        assert flags == (published.client_streaming, published.server_streaming)
    assert len(seen) > 40 and fields > 100
