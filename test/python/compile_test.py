# SPDX-License-Identifier: Apache-2.0
"""Models as functions: tensorwright.compile() and load(), their caches, and what they say of wrong arguments."""

import gc
import inspect
import os
import pathlib
import re
import statistics
import threading
import time

import numpy as np
import onnx
import pytest
import tensorrt as trt
import tensorwright
from onnx import TensorProto, helper, numpy_helper
from tensorwright import _compile, _model, _plans, _torch

from models import Resnet, close
from small import LOUD


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path / "plans"))
    return tmp_path


@pytest.fixture(scope="module")
def net():
    return Resnet(size=16)


@pytest.fixture(scope="module")
def compiled(net):
    return tensorwright.compile(net.model(), cache=False)


def image(net, batch=1, seed=0):
    return np.random.default_rng(seed).standard_normal((batch, *net.shape[1:])).astype(np.float32)


def two_inputs(dynamic=False, integers=TensorProto.INT64):
    """sum = a + b, rows = table[i]."""
    n = "n" if dynamic else 3
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Gather", ["table", "i"], ["rows"])],
        "two",
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, (n, 4)),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, (n, 4)),
            helper.make_tensor_value_info("i", integers, (2,)),
        ],
        [
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, (n, 4)),
            helper.make_tensor_value_info("rows", TensorProto.FLOAT, (2, 5)),
        ],
        [numpy_helper.from_array(TABLE, "table")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


TABLE = np.arange(50, dtype=np.float32).reshape(10, 5)


def test_ten_lines(net, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "model.onnx").write_bytes(net.model(dynamic_batch=True))
    rest = net.shape[1:]
    model = tensorwright.compile("model.onnx", shapes={"input": ((1, *rest), (2, *rest), (4, *rest))})
    for batch in (1, 2, 3, 4):
        x = image(net, batch)
        for y in (model(x), model(input=x), model({"input": x}), model.run({"input": x})["prob"]):
            close(y, net.answer(x))
    model.save("model.plan")
    again = tensorwright.load("model.plan")
    np.testing.assert_array_equal(again(x), model(x))
    np.testing.assert_array_equal(tensorwright.load(model.plan)(x), model(x))
    assert "input" in repr(again) and again.inputs == ("input",) and again.outputs == ("prob",)
    assert os.listdir(folder) and not [f for f in os.listdir(folder) if f.endswith(".part")]


def test_program_of_the_page(net, folder, monkeypatch):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (folder / "model.onnx").write_bytes(net.model())
    monkeypatch.chdir(folder)
    names = {}
    exec(program, names)
    close(names["y"], net.answer(np.zeros(net.shape, np.float32)))
    # The arguments that the page shows are those that there are.
    (signature,) = re.findall(r"^`compile\((.*)\)`:$", page, re.M)
    assert str(inspect.signature(tensorwright.compile)) == f"({signature})".replace('"', "'")


def test_names_and_integers():
    model = tensorwright.compile(two_inputs())
    a, b = np.ones((3, 4), np.float32), np.full((3, 4), 2, np.float32)
    for i in (np.array([3, 9]), np.array([3, 9], np.int32), [3, 9]):
        result = model(a, b, i)
        assert sorted(result) == ["rows", "sum"]
        np.testing.assert_array_equal(result["sum"], a + b)
        np.testing.assert_array_equal(result["rows"], TABLE[[3, 9]])
    result = model(b=b, i=[0, 1], a=np.asfortranarray(a))
    np.testing.assert_array_equal(result["sum"], a + b)
    with pytest.raises(OverflowError, match="'i'"):
        model(a, b, np.array([0, 2**40]))
    with pytest.raises(TypeError, match="'b' is missing"):
        model(a)
    with pytest.raises(TypeError, match="'c'"):
        model(a, b, [0, 1], c=a)
    with pytest.raises(TypeError, match="'a' was given twice"):
        model(a, a=a)
    with pytest.raises(TypeError, match="4 arrays"):
        model(a, b, [0, 1], a)
    with pytest.raises(TypeError, match=r"'a' is float64.*astype\('float32'\)"):
        model(a.astype(np.float64), b, [0, 1])
    with pytest.raises(TypeError, match="'i' is float32"):
        model(a, b, a[0, :2])
    for wrong in (a[:2], a[0], a[None], a.ravel(), np.float32(1), np.zeros((0, 4), np.float32)):
        with pytest.raises(ValueError, match=r"'a' has the shape.*\[3, 4\]"):
            model(wrong, b, [0, 1])
    np.testing.assert_array_equal(model(a, b, [1, 2])["sum"], a + b)  # nothing is left of the errors


def test_shapes_are_checked(compiled, net):
    dynamic = two_inputs(dynamic=True)
    with pytest.raises(ValueError, match=r"'a' has open extents \[-1, 4\].*shapes="):
        tensorwright.compile(dynamic)
    three = ((1, 4), (2, 4), (5, 4))
    for wrong in ((3, 5), (3,), (1, 3, 4), ((1, 4), (2, 4)), ((1, 4), (2, 4), (3,)), (-1, 4)):
        with pytest.raises(ValueError, match="'a'"):
            tensorwright.compile(dynamic, shapes={"a": wrong, "b": three})
    with pytest.raises(ValueError, match="'nothing'"):
        tensorwright.compile(dynamic, shapes={"nothing": (1,)})
    model = tensorwright.compile(dynamic, shapes={"a": three, "b": three})
    for n in (1, 5):
        x = np.full((n, 4), n, np.float32)
        np.testing.assert_array_equal(model(x, x, [0, 1])["sum"], 2 * x)
    with pytest.raises(ValueError, match=r"'a' has the shape \[6, 4\].*from \[1, 4\] to \[5, 4\]"):
        model(np.zeros((6, 4), np.float32), np.zeros((6, 4), np.float32), [0, 1])
    with pytest.raises((ValueError, RuntimeError)):  # each fits, together they do not
        model(np.zeros((2, 4), np.float32), np.zeros((5, 4), np.float32), [0, 1])


def test_wrong_arguments(net, folder):
    (folder / "text.onnx").write_text("this is no model")
    (folder / "empty.onnx").write_text("")
    for name in ("text.onnx", "empty.onnx"):
        with pytest.raises((ValueError, RuntimeError)):
            tensorwright.compile(folder / name)
    with pytest.raises(FileNotFoundError, match="missing.onnx"):
        tensorwright.compile("missing.onnx")
    with pytest.raises(TypeError, match="int"):
        tensorwright.compile(5)
    with pytest.raises(ValueError, match="precision.*'fp8'.*fp16"):
        tensorwright.compile(net.model(), precision="fp8")
    with pytest.raises(ValueError, match="calibration"):
        tensorwright.compile(net.model(), calibration=[image(net)])
    with pytest.raises(ValueError, match="'tpu'"):
        tensorwright.compile(net.model(), device="tpu")
    with pytest.raises(RuntimeError, match="plan was refused"):
        tensorwright.load(b"no plan")
    with pytest.raises(RuntimeError, match="plan was refused"):
        tensorwright.load(b"")


def test_plans_are_kept_by_content(net, folder, monkeypatch):
    builds = []
    build = _compile._build
    monkeypatch.setattr(_compile, "_build", lambda *a: builds.append(a) or build(*a))
    x = image(net)
    expected = net.answer(x)
    model, other = net.model(), Resnet(size=16, seed=8).model()
    for i, (source, options, fresh) in enumerate(
        (
            (model, {}, True),
            (model, {}, False),
            (other, {}, True),
            (model, {"precision": "fp16"}, True),
            (model, {"refit": True}, True),
            (model, {"cache": False}, True),
            (model, {"cache": str(folder / "elsewhere")}, True),
            (model, {"cache": folder / "elsewhere"}, False),
            (model, {"shapes": {"input": net.shape}}, True),
        )
    ):
        del builds[:]
        compiled = tensorwright.compile(source, **options)
        assert bool(builds) == fresh, i
        if source is model:
            close(compiled(x), expected, 1e-2)
    # A file is known by its content, not by its name.
    (folder / "a.onnx").write_bytes(model)
    del builds[:]
    tensorwright.compile(folder / "a.onnx")
    assert not builds
    # A plan that is damaged is built again, and stands there whole afterwards.
    plans = _plans.cached_plans()
    assert len(plans) >= 4
    for path in plans:
        with open(path, "r+b") as file:
            file.truncate(100)
    close(tensorwright.compile(model)(x), expected)
    assert len(builds) == 1
    tensorwright.compile(model)
    assert len(builds) == 1
    # A folder that cannot be made is no failure.
    tensorwright.compile(model, cache=str(folder / "a.onnx" / "below a file"))
    assert len(builds) == 2


def test_external_weights_count(net, folder):
    path = folder / "external.onnx"
    onnx.save_model(
        onnx.load_from_string(net.model()), path, save_as_external_data=True, location="weights.bin", size_threshold=64
    )
    assert _plans.external_files(path.read_bytes()) == ["weights.bin"]
    x = image(net)
    close(tensorwright.compile(path)(x), net.answer(x))
    data = bytearray((folder / "weights.bin").read_bytes())
    data[:] = bytes(len(data) // 4 * 4)  # zeros
    (folder / "weights.bin").write_bytes(data)
    changed = tensorwright.compile(path)(x)
    assert np.abs(changed - net.answer(x)).max() > 1e-3


def test_calibration(net, folder):
    batches = [image(net, seed=s) for s in range(3)]
    x = image(net, seed=9)
    expected = net.answer(x)
    for calibration in (batches, [{"input": b} for b in batches]):
        model = tensorwright.compile(net.model(), precision="int8", calibration=calibration, cache=False)
        assert np.abs(model(x) - expected).max() < 0.15 * np.ptp(expected)
    rest = net.shape[1:]
    shapes = {"input": ((1, *rest), (2, *rest), (4, *rest))}
    dynamic = tensorwright.compile(net.model(True), shapes, "int8", [image(net, 2, s) for s in range(2)])
    assert np.abs(dynamic(x) - expected).max() < 0.15 * np.ptp(expected)
    for wrong, match in (
        ([], "no batch"),
        ([{"nothing": batches[0]}], "'nothing'"),
        ([image(net, 3)], r"\[3, 3, 16, 16\]"),
        ([batches[0], batches[0][0]], "batch 1"),
    ):
        with pytest.raises(ValueError, match=match):
            tensorwright.compile(net.model(), precision="int8", calibration=wrong)
    with pytest.raises(FileNotFoundError):
        tensorwright.compile(net.model(), precision="int8", calibration=folder / "missing.cache")


def test_calibration_takes_the_better_algorithm(net, folder, monkeypatch):
    batches = [image(net, seed=s) for s in range(2)]
    build, plans, losses = _compile._build, {}, []

    def remembered(source, options, *rest):
        plans[options["algorithm"] if options["calibration"] else "fp32"] = plan = build(source, options, *rest)
        return plan

    def ranked(results, wanted):
        assert len(results) == len(wanted) == 2 and set(wanted[0]) == {"prob"}
        return losses.pop(0)

    monkeypatch.setattr(_compile, "_build", remembered)
    monkeypatch.setattr(_compile, "_loss", ranked)
    for best, losses in (("entropy2", [0.1, 0.5]), ("minmax", [0.5, 0.1]), ("entropy2", [0.1, np.inf])):
        plans.clear()
        model = tensorwright.compile(net.model(), precision="int8", calibration=batches, cache=False)
        assert set(plans) == {"entropy2", "minmax", "fp32"}
        assert bytes(model.plan) == plans[best], best
    for algorithm in ("entropy2", "minmax"):  # who says which one has no other built
        plans.clear()
        tensorwright.compile(net.model(), precision="int8", calibration=batches, cache=False, algorithm=algorithm)
        assert set(plans) == {algorithm}
    # Batches that the engine is not for: nothing can be compared.
    rest = net.shape[1:]
    plans.clear()
    tensorwright.compile(net.model(True), {"input": (1, *rest)}, "int8", [image(net, 3)], cache=False)
    assert set(plans) == {"entropy2"}
    # A cache says which algorithm wrote it.
    cache = folder / "minmax.cache"
    cache.write_text("TRT-8503-MinMaxCalibration\ninput: 3d010204\n")
    tensorwright.compile(net.model(), precision="int8", calibration=cache, cache=False)
    for wrong in ({"algorithm": "median", "calibration": batches, "precision": "int8"}, {"algorithm": "minmax"}):
        with pytest.raises(ValueError, match="algorithm"):
            tensorwright.compile(net.model(), **wrong)


def test_loss_of_calibration():
    wanted = [{"a": np.array([3.0, 4.0]), "b": np.array([0.0])}] * 2
    exact = _compile._loss(wanted, wanted)
    assert exact == 0
    off = [{"a": np.array([3.0, 4.5]), "b": np.array([0.0])}, wanted[1]]
    assert abs(_compile._loss(off, wanted) - np.sqrt(0.25 / 50)) < 1e-12
    assert _compile._loss([{**wanted[0], "a": np.array([np.nan, 4])}, wanted[1]], wanted) == np.inf


def test_profile_and_compare(compiled, net):
    x = image(net)
    layers = compiled.profile(x, runs=3)
    assert layers and all(layer["ms"] >= 0 for layer in layers)
    assert abs(sum(layer["share"] for layer in layers) - 1) < 1e-6 and " ms " in str(layers)
    same = compiled.compare(x, reference=lambda inputs: {"prob": net.answer(inputs["input"])})
    assert same["prob"]["max_abs"] < 1e-4 and same["prob"]["cosine"] > 0.9999 and "prob" in str(same)
    wrong = compiled.compare(x, reference={"prob": net.answer(x) + 1})
    assert 0.99 < wrong["prob"]["max_abs"] < 1.01
    assert compiled.compare(reference="fp32")["prob"]["max_abs"] < 1e-5
    with pytest.raises(KeyError, match="'prob'"):
        compiled.compare(x, reference={"other": x})
    with pytest.raises(ValueError, match="shape"):
        compiled.compare(x, reference={"prob": x})
    with pytest.raises(ValueError, match="'magic'"):
        compiled.compare(x, reference="magic")
    with pytest.raises(ValueError, match="loaded from a plan"):
        tensorwright.load(compiled.plan).compare(x)
    nan = np.full((1, 10), np.nan, np.float32)
    assert np.isnan(compiled.compare(x, reference={"prob": nan})["prob"]["max_abs"])


def test_onnx_runtime_as_reference(compiled):
    pytest.importorskip("onnxruntime")
    assert compiled.compare()["prob"]["max_abs"] < 1e-4
    assert tensorwright.compile(two_inputs()).compare(reference="onnxruntime")["rows"]["max_abs"] == 0


def test_outputs_of_unknown_size():
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["z"])],
        "unknown",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 4))],
        [helper.make_tensor_value_info("y", TensorProto.INT64, (2, None)), helper.make_tensor_value_info("z", TensorProto.FLOAT, (3, 4))],
    )
    model = tensorwright.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    random = np.random.default_rng(0)
    for density in (0, 0.3, 1, 0.5, 0):
        x = (random.random((3, 4)) < density).astype(np.float32)
        result = model(x)
        np.testing.assert_array_equal(result["y"], np.array(x.nonzero()))
        np.testing.assert_array_equal(result["z"], x)


def test_runs_keep_nothing():
    """One allocator for all runs of an output of unknown size, and results that are the caller's."""
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"])],
        "unknown",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1000,))],
        [helper.make_tensor_value_info("y", TensorProto.INT64, (1, None))],
    )
    model = tensorwright.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), cache=False)
    x = np.ones(1000, np.float32)
    first = model(x)
    model(np.zeros(1000, np.float32))
    assert first.tolist() == [list(range(1000))]

    def allocators():
        gc.collect()
        return sum(type(each) is _model._Output for each in gc.get_objects())

    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(200):
        model(x)
    before, count = resident(), allocators()
    for _ in range(3000):
        model(x)
    assert allocators() == count <= 1 and resident() - before < 4 << 20


def test_shapes_as_outputs_are_the_callers_own():
    """What an earlier run gave stays as it was, though shapes are written before a run begins."""
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (-1, 5))
    for name, layer in (("s", network.add_shape(x)), ("y", network.add_unary(x, trt.UnaryOperation.NEG))):
        layer.get_output(0).name = name
        (network.mark_output_for_shapes if name == "s" else network.mark_output)(layer.get_output(0))
    profile, config = builder.create_optimization_profile(), builder.create_builder_config()
    profile.set_shape("x", (1, 5), (2, 5), (9, 5))
    config.add_optimization_profile(profile)
    model = tensorwright.load(builder.build_serialized_network(network, config))
    results = [model(np.ones((n, 5), np.float32)) for n in (2, 3, 3, 4, 1)]
    assert [result["s"].tolist() for result in results] == [[2, 5], [3, 5], [3, 5], [4, 5], [1, 5]]
    assert all((result["y"] == -1).all() for result in results)


def test_memory_is_used_again_when_nobody_has_it():
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    layer = network.add_unary(network.add_input("x", trt.float32, (8,)), trt.UnaryOperation.NEG)
    network.mark_output(layer.get_output(0))
    model = tensorwright.load(builder.build_serialized_network(network, builder.create_builder_config()))
    results = [model(np.full(8, i, np.float32)) for i in range(10)]
    assert [y[0] for y in results] == [-i for i in range(10)]
    parts = [model(np.full(8, i, np.float32))[2:4] for i in range(10)]  # and views of one
    buffers = [memoryview(model(np.full(8, i, np.float32))) for i in range(10)]
    for i in range(10):
        assert parts[i].tolist() == [-i] * 2 and buffers[i].tolist() == [-i] * 8
    assert len({model(np.zeros(8, np.float32)).ctypes.data for _ in range(10)}) == 1


def test_a_call_costs_little():
    """Above the engine's own call with arrays that are prepared: 15 us is the goal (bench/python_calls.py); the best of many rounds here."""
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    layer = network.add_unary(network.add_input("x", trt.float32, (8,)), trt.UnaryOperation.NEG)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    model = tensorwright.load(builder.build_serialized_network(network, builder.create_builder_config()))
    context, x, y = model.engine.create_execution_context(), np.ones(8, np.float32), np.zeros(8, np.float32)
    context.set_tensor_address("x", x.ctypes.data), context.set_tensor_address("y", y.ctypes.data)
    rounds = []
    for _ in range(30):
        start = time.thread_time()
        for _ in range(200):
            context.execute_async_v3(0)
        middle = time.thread_time()
        for _ in range(200):
            model(x)
        rounds.append((time.thread_time() - middle - (middle - start)) / 200 * 1e6)
    text = f"Model.__call__ above execute_async_v3: {statistics.median(rounds):.1f} us, {min(rounds):.1f} in the best of {len(rounds)} rounds\n"
    if "TW_REPORT_DIR" in os.environ:
        pathlib.Path(os.environ["TW_REPORT_DIR"], "model_call.txt").write_text(text)
    assert min(rounds) < 20, text


def test_values_that_decide_shapes():
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "reshape",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (6,)), helper.make_tensor_value_info("shape", TensorProto.INT64, (2,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (None, None))],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(ValueError, match="'shape' decides shapes"):
        tensorwright.compile(source)
    model = tensorwright.compile(source, shapes={"shape": ((1, 1), (2, 3), (6, 6))})
    x = np.arange(6, dtype=np.float32)
    for shape in ((2, 3), (6, 1), (3, 2)):
        np.testing.assert_array_equal(model(x, np.array(shape)), x.reshape(shape))


def test_scalars_and_empty_tensors():
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "s"], ["y"])],
        "scalar",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n",)), helper.make_tensor_value_info("s", TensorProto.FLOAT, ())],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n",))],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    model = tensorwright.compile(source, shapes={"x": ((0,), (4,), (8,))})
    for n in (0, 1, 8):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(model(x, 2.0), 2 * x)
        np.testing.assert_array_equal(model(x, np.float32(3)), 3 * x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_threads(compiled, net, dynamic):
    rest, failures = net.shape[1:], []
    shapes = {"input": ((1, *rest), (2, *rest), (4, *rest))}
    model = tensorwright.compile(net.model(True), shapes) if dynamic else compiled

    def work(seed):
        try:
            for turn in range(5):
                x = image(net, 1 + turn % 4 if dynamic else 1, seed=10 * seed + turn)
                close(model(x), net.answer(x))
                with pytest.raises(ValueError):  # and a context that failed keeps nobody waiting
                    model(x[:, :1])
        except BaseException as error:  # what a thread raises is seen nowhere else
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_results_are_the_callers_own(compiled, net):
    first = compiled(image(net, seed=1))
    kept = first.copy()
    compiled(image(net, seed=2))
    np.testing.assert_array_equal(first, kept)
    first[:] = 0  # writable


def test_environment_is_as_before(net, monkeypatch):
    monkeypatch.delenv("TENSORWRIGHT_DEVICE")
    tensorwright.compile(net.model(), device="cpu", cache=False)
    assert "TENSORWRIGHT_DEVICE" not in os.environ
    monkeypatch.setenv("TENSORWRIGHT_DEVICE", "cpu")
    tensorwright.load(tensorwright.compile(net.model()).plan)
    assert os.environ["TENSORWRIGHT_DEVICE"] == "cpu"


def test_progress(net, capfd):
    tensorwright.compile(net.model(), cache=False, progress=True)
    shown = capfd.readouterr().err
    assert "building model" in shown and shown.endswith("\n") and "done" in shown
    tensorwright.compile(net.model(), cache=False)
    assert capfd.readouterr().err == ""


def test_what_shapes_leave_open_of_a_module():
    examples = [np.zeros(shape) for shape in ((2, 3, 8), (2, 4), (5,))]
    shapes = {"a": ((1, 3, 8), (2, 3, 8), (9, 3, 16)), "b": ((1, 4), (2, 4), (9, 4)), "c": ((5,),) * 3}
    axes = _torch.open_axes(["a", "b", "c"], examples, shapes)
    assert axes == {"a": {0: "batch", 2: "a_2"}, "b": {0: "batch"}}
    assert _torch.open_axes(["c"], examples[2:], {"c": ((1,), (5,), (7,))}) == {"c": {0: "batch"}}
    shapes["b"] = ((1, 4), (2, 4), (8, 4))
    assert _torch.open_axes(["a", "b", "c"], examples, shapes)["b"] == {0: "b_0"}
    with pytest.raises(ValueError, match="is of rank 2, the example in inputs= of rank 1"):
        _torch.open_axes(["c"], examples[2:], {"c": ((1, 5),) * 3})
    with pytest.raises(ValueError, match="no input is called 'z'"):
        _torch.open_axes(["c"], examples[2:], {"z": ((1,),) * 3})


def test_torch_modules(compiled, net):
    torch = pytest.importorskip("torch")
    y = compiled(torch.from_numpy(image(net)))
    assert isinstance(y, torch.Tensor) and not y.requires_grad
    close(y.numpy(), net.answer(image(net)))
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5))
    example = torch.randn(2, 3, 8, 8)
    model = tensorwright.compile(module, inputs=(example,), cache=False)
    close(model(example).numpy(), module(example).detach().numpy())
    assert module.training
    with pytest.raises(ValueError, match="inputs="):
        tensorwright.compile(module)
    # With an open batch.
    (name,) = model.inputs
    rest = (3, 8, 8)
    model = tensorwright.compile(module, {name: ((1, *rest), (2, *rest), (9, *rest))}, inputs=(example,), cache=False)
    assert tuple(model.engine.get_tensor_shape(name)) == (-1, *rest)
    for n in (1, 2, 7, 9):
        x = torch.randn(n, *rest)
        close(model(x).numpy(), module(x).detach().numpy())
    with pytest.raises(ValueError, match="no input is called 'z'"):
        tensorwright.compile(module, {"z": (1, *rest)}, inputs=(example,), cache=False)


def test_the_names_of_tensorrt():
    assert tensorwright.Builder is trt.Builder and tensorwright.__version__ == trt.__version__
    assert set(trt.__all__) <= set(tensorwright.__all__)


def test_caffe(folder):
    """A network's text and its weights; the batch as shapes= says; blobs that nobody reads, or those that are named."""
    from caffe_files import Net, Word
    from caffe_layers_test import conv, normal, pool, softmax

    net, w, b = Net(), normal(1, 4, 3, 3, 3), normal(2, 4)
    net.layer("Convolution", net.input("data", 3, 8, 8), "conv", [w, b], convolution_param=dict(num_output=4, kernel_size=3))
    net.layer("ReLU", "conv", "conv")
    net.layer("Pooling", "conv", "pool", pooling_param=dict(pool=Word("AVE"), kernel_size=2, stride=2))
    net.layer("Softmax", "pool", "prob")
    net.layer("Slice", "pool", ["left", "right"], slice_param=dict(slice_point=1))
    text, weights = folder / "deploy.prototxt", folder / "net.caffemodel"
    text.write_text(net.text)
    weights.write_bytes(net.model)
    x = normal(3, 5, 3, 8, 8)
    p = pool(np.maximum(conv(x, w, b), 0), "AVE", (2, 2), (2, 2), (0, 0))
    one = tensorwright.compile(text, weights=weights)
    assert list(one.outputs) == ["prob", "left", "right"]
    got = one(x[:1])
    close(got["prob"], softmax(p, 1)[:1])
    close(got["right"], p[:1, 1:])
    assert len(list((folder / "plans").iterdir())) == 1
    tensorwright.compile(str(text), weights=str(weights))
    assert len(list((folder / "plans").iterdir())) == 1
    some = tensorwright.compile(text, {"data": ((1, 3, 8, 8), (2, 3, 8, 8), (5, 3, 8, 8))}, weights=weights, outputs=["prob", "pool"])
    for n in (1, 5):
        close(some(x[:n])["prob"], softmax(p, 1)[:n])
    three = tensorwright.compile(text, {"data": (3, 3, 8, 8)}, weights=weights, outputs="right", cache=False)
    close(three(x[:3]), p[:3, 1:])
    assert one.compare()["prob"]["cosine"] > 0.999  # with FP32
    with pytest.raises(ValueError, match="ONNX Runtime reads no Caffe model"):
        one.compare(reference="onnxruntime")
    calibrated = tensorwright.compile(text, precision="int8", calibration=[x[i : i + 1] for i in range(5)], weights=weights, outputs="prob", cache=False)
    assert np.abs(calibrated(x[:1]) - softmax(p, 1)[:1]).max() < 0.1
    net.model = net.model.replace(b"conv", b"cunv")
    weights.write_bytes(net.model)  # other content: another plan, which cannot be made
    for arguments, error, words in [
        (dict(weights=weights), ValueError, "the model has no arrays for it"),
        (dict(), ValueError, "weights= must name its file"),
        (dict(weights=folder / "none"), FileNotFoundError, "there is no model"),
    ]:
        with pytest.raises(error, match=words):
            tensorwright.compile(text, **arguments)
    net.model = net.model.replace(b"cunv", b"conv")
    weights.write_bytes(net.model)
    with pytest.raises(ValueError, match="no blob is called 'nothing'"):
        tensorwright.compile(text, weights=weights, outputs=["nothing"])
    with pytest.raises(ValueError, match="has the weights of a Caffe model"):
        tensorwright.compile(weights)
    with pytest.raises(ValueError, match="are for Caffe models"):
        tensorwright.compile(b"onnx", outputs=["y"])
