# SPDX-License-Identifier: Apache-2.0
"""Programs that call Polygraphy's Python API, and the subtools of its command line, at random parameters (TW_SEED chooses them)."""

import importlib.util
import json
import os

import numpy as np
import onnx
import pytest
import tensorrt as trt

if not (importlib.util.find_spec("polygraphy") and importlib.util.find_spec("onnxruntime")):
    pytest.skip("Polygraphy or ONNX Runtime is not installed (PyPI: polygraphy, onnxruntime)", allow_module_level=True)

from polygraphy import cuda  # noqa: E402
from polygraphy.backend.common import BytesFromPath, SaveBytes  # noqa: E402
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx  # noqa: E402
from polygraphy.backend.trt import (  # noqa: E402
    Algorithm,
    Calibrator,
    CreateConfig,
    CreateNetwork,
    EngineBytesFromNetwork,
    EngineFromBytes,
    EngineFromNetwork,
    ModifyNetworkOutputs,
    NetworkFromOnnxBytes,
    NetworkFromOnnxPath,
    Profile,
    SaveEngine,
    SetLayerPrecisions,
    SetTensorDatatypes,
    SetTensorFormats,
    TacticRecorder,
    TacticReplayData,
    TacticReplayer,
    TrtRunner,
    get_trt_logger,
)
from polygraphy.comparator import Comparator, CompareFunc, DataLoader  # noqa: E402
from polygraphy.common import TensorMetadata  # noqa: E402
from polygraphy.exception import PolygraphyException  # noqa: E402

from models import Resnet, close  # noqa: E402
from polygraphy_test import models, polygraphy, run_models  # noqa: E402

SEEDS = [int(os.environ.get("TW_SEED", 0)) + i for i in range(2)]


class Net:
    def __init__(self, seed, dynamic=False):
        self.random = np.random.default_rng(seed)
        self.batch, size = int(self.random.integers(1, 4)), int(self.random.integers(12, 28))
        self.net = Resnet(batch=self.batch, size=size, seed=seed)
        self.model, self.shape = self.net.model(dynamic_batch=dynamic), self.net.shape

    def input(self, batch=None):
        return self.random.standard_normal((batch or self.batch, *self.shape[1:])).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", [{}, {"fp16": True}, {"refittable": True}, {"tf32": True, "sparse_weights": True}, {"tactic_sources": []}])
def test_comparator(seed, options):
    net = Net(seed)
    runners = [TrtRunner(EngineFromNetwork(NetworkFromOnnxBytes(net.model), CreateConfig(**options))), OnnxrtRunner(SessionFromOnnx(net.model))]
    results = Comparator.run(runners, data_loader=DataLoader(seed=seed, iterations=3), warm_up=1)
    tolerance = 2e-2 if "fp16" in options else 1e-4
    assert bool(Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol=tolerance, rtol=tolerance)))
    assert Comparator.validate(results, check_inf=True, check_nan=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("base", ["IInt8EntropyCalibrator2", "IInt8EntropyCalibrator", "IInt8MinMaxCalibrator", "IInt8LegacyCalibrator"])
@pytest.mark.parametrize("kind", ["numpy", "device"])
def test_calibrator(seed, base, kind, tmp_path):
    net, path = Net(seed), tmp_path / "calibration.cache"
    batches = [net.input() for _ in range(4)]

    def data():
        for x in batches:
            yield {"input": cuda.DeviceArray(x.shape, x.dtype).copy_from(x) if kind == "device" else x}

    def runner():
        legacy = {"quantile": 0.9999, "regression_cutoff": 1.0} if "Legacy" in base else {}
        calibrator = Calibrator(data_loader=data(), cache=str(path), BaseClass=getattr(trt, base), batch_size=net.batch, **legacy)
        return TrtRunner(EngineFromNetwork(NetworkFromOnnxBytes(net.model), CreateConfig(int8=True, calibrator=calibrator)))

    answers = []
    for _ in range(2):  # the second reads the cache
        with runner() as each:
            answers.append(each.infer({"input": batches[0]})["prob"].copy())
    assert path.read_text().startswith("TRT-8503")
    expected = net.net.answer(batches[0])
    assert np.abs(answers[0] - expected).max() < 0.1 and np.ptp(expected) > 0.01
    np.testing.assert_allclose(answers[0], answers[1], atol=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_tactics_recorded_and_replayed(seed, tmp_path):
    net, record = Net(seed), TacticReplayData()
    network = NetworkFromOnnxBytes(net.model)
    EngineFromNetwork(network, CreateConfig(algorithm_selector=TacticRecorder(record)))()
    assert len(record) and all(isinstance(a, Algorithm) for a in record.values())
    record.save(str(tmp_path / "replay.json"))
    again = TacticReplayData.load(str(tmp_path / "replay.json"))
    assert dict(again) == dict(record)
    both = TacticReplayData()
    selector = TacticReplayer(again)
    x = net.input()
    with TrtRunner(EngineFromNetwork(network, CreateConfig(algorithm_selector=selector))) as runner:
        close(runner.infer({"input": x})["prob"], net.net.answer(x))
    EngineFromNetwork(network, CreateConfig(algorithm_selector=TacticRecorder(both)))()
    # Formats are chosen by time: whether something is reordered in front of a layer may differ from build to build.
    layers = [{name for name in data if not name.startswith("Reformatting")} for data in (both, record)]
    assert layers[0] == layers[1]
    # A tactic that nobody offers ends the build with a message.
    name = sorted(record)[0]
    again[name] = Algorithm(1, 2, again[name].inputs, again[name].outputs)
    with pytest.raises(PolygraphyException):
        EngineFromNetwork(network, CreateConfig(algorithm_selector=TacticReplayer(again)))()


@pytest.mark.parametrize("seed", SEEDS)
def test_open_shapes_and_profiles(seed):
    net = Net(seed, dynamic=True)
    rows = sorted(int(n) for n in net.random.integers(1, 6, 3))
    profiles = [Profile().add("input", *[(n, *net.shape[1:]) for n in rows]), Profile().add("input", *[(n + 6, *net.shape[1:]) for n in rows])]
    plan = EngineBytesFromNetwork(NetworkFromOnnxBytes(net.model), CreateConfig(profiles=profiles))()
    for index, (low, high) in enumerate(((rows[0], rows[2]), (rows[0] + 6, rows[2] + 6))):
        with TrtRunner(EngineFromBytes(plan), optimization_profile=index) as runner:
            assert runner.context.active_optimization_profile == index
            for n in (high, low):
                x = net.input(n)
                close(runner.infer({"input": x})["prob"], net.net.answer(x))
            with pytest.raises(PolygraphyException):
                runner.infer({"input": net.input(high + 1)})
            with pytest.raises(PolygraphyException):
                runner.infer({"input": x.astype(np.float64)})
            with pytest.raises(PolygraphyException):
                runner.infer({})
    # Without a profile Polygraphy makes one of extents of 1.
    with TrtRunner(EngineFromNetwork(NetworkFromOnnxBytes(net.model))) as runner:
        x = net.input(1)
        close(runner.infer({"input": x})["prob"], net.net.answer(x))


@pytest.mark.parametrize("seed", SEEDS)
def test_outputs_precisions_types_and_formats(seed, tmp_path):
    net = Net(seed)
    x = net.input()
    path = tmp_path / "net.onnx"
    path.write_bytes(net.model)
    load = NetworkFromOnnxPath(str(path))
    inner = ["block0", "mean"]
    with TrtRunner(EngineFromNetwork(ModifyNetworkOutputs(load, outputs=inner))) as runner, OnnxrtRunner(
        SessionFromOnnx(outputs_of(net.model, inner))
    ) as other:
        mine, theirs = runner.infer({"input": x}), other.infer({"input": x})
        assert set(mine) == set(inner)
        for name in inner:
            close(np.array(mine[name]), np.array(theirs[name]))
    builder, network, _ = load()
    names = [network.get_layer(i).name for i in range(network.num_layers)]
    chosen = {str(n): trt.float16 for n in net.random.permutation(names)[:3]}
    fitting = {n: t for n, t in chosen.items() if network.get_layer(names.index(n)).type in (trt.LayerType.CONVOLUTION, trt.LayerType.ACTIVATION)}
    options = CreateConfig(fp16=True, precision_constraints="prefer", direct_io=True)
    changed = SetTensorFormats(
        SetTensorDatatypes(SetLayerPrecisions(load, fitting), {"input": trt.float16, "prob": trt.float32}),
        {"input": [trt.TensorFormat.LINEAR], "prob": [trt.TensorFormat.LINEAR]},
    )
    saved = SaveEngine(EngineFromNetwork(changed, options), str(tmp_path / "half.plan"))
    with TrtRunner(saved) as runner:
        meta = runner.get_input_metadata()
        assert meta["input"].dtype == np.float16
        expected = net.net.answer(x)
        assert np.ptp(expected) > 0.1
        np.testing.assert_allclose(np.array(runner.infer({"input": x.astype(np.float16)})["prob"]), expected, atol=2e-2)
    with TrtRunner(EngineFromBytes(BytesFromPath(str(tmp_path / "half.plan")))) as runner:
        expected = net.net.answer(x)
        assert np.ptp(expected) > 0.1
        np.testing.assert_allclose(np.array(runner.infer({"input": x.astype(np.float16)})["prob"]), expected, atol=2e-2)


def outputs_of(data, names):
    model = onnx.load_from_string(data)
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in names)
    return model.SerializeToString()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_network_by_hand_and_a_timing_cache(seed, tmp_path):
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(1, 6, 3))

    def network():
        builder, network = CreateNetwork()()
        x = network.add_input("x", trt.float32, shape)
        y = network.add_unary(x, trt.UnaryOperation.EXP).get_output(0)
        y = network.add_reduce(y, trt.ReduceOperation.SUM, 2, True).get_output(0)
        y.name = "y"
        network.mark_output(y)
        return builder, network

    cache = str(tmp_path / "timing.cache")
    plans = []
    for _ in range(3):
        build = EngineBytesFromNetwork(network, CreateConfig(load_timing_cache=cache), save_timing_cache=cache)
        plans.append(bytes(SaveBytes(build, str(tmp_path / "y.plan"))()))
    assert plans[1] == plans[2] == (tmp_path / "y.plan").read_bytes()
    x = random.standard_normal(shape).astype(np.float32)
    with TrtRunner(EngineFromBytes(plans[0])) as runner:
        y = runner.infer({"x": cuda.DeviceArray(x.shape, x.dtype).copy_from(x)}, copy_outputs_to_host=False)["y"]
        np.testing.assert_allclose(y.numpy(), np.exp(x).sum(1, keepdims=True), rtol=1e-5)
        assert runner.last_inference_time() > 0
        assert isinstance(runner.get_input_metadata(), TensorMetadata)
    assert get_trt_logger() is not None


SCRIPT = """
import tensorrt as trt
import numpy as np
from polygraphy.backend.trt import CreateNetwork, CreateConfig
from polygraphy import func

def load_data():
    for i in range(2):
        yield {"input": np.full((1, 3, 16, 16), 0.25 * (i + 1), np.float32)}

@func.extend(CreateNetwork())
def load_network(builder, network):
    x = network.add_input("input", trt.float32, (1, 3, 16, 16))
    y = network.add_activation(x, trt.ActivationType.SIGMOID)
    y.get_output(0).name = "y"
    network.mark_output(y.get_output(0))

@func.extend(CreateConfig())
def load_config(config):
    config.set_flag(trt.BuilderFlag.FP16)
"""


needs_surgeon = pytest.mark.skipif(
    not (importlib.util.find_spec("onnx_graphsurgeon") and importlib.util.find_spec("sympy")),
    reason="ONNX-GraphSurgeon or SymPy is not installed (PyPI: onnx-graphsurgeon, sympy)",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    (folder / "net.onnx").write_bytes(Resnet(size=16).model())
    (folder / "script.py").write_text(SCRIPT)
    return folder


def passes(folder, *command, word=""):
    status, text = polygraphy(*command, folder=folder)
    assert status == 0 and word in text, text[-3000:]
    return text


RUNS = {
    "tactics": [["--save-tactics", "t.json"], ["--load-tactics", "t.json"]],
    "timing_cache": [["--save-timing-cache", "t.cache"], ["--load-timing-cache", "t.cache"]],
    "results": [["--save-inputs", "in.json", "--save-outputs", "out.json"], ["--load-inputs", "in.json", "--load-outputs", "out.json"]],
    "engine": [["--save-engine", "run.plan", "--profiling-verbosity", "detailed"]],
    "precisions": [["--fp16", "--precision-constraints", "prefer", "--layer-precisions", "node_of_pool:float32", "--atol=1e-2"]],
    "int8": [["--int8", "--calibration-cache", "i.cache", "--calibration-base-class", "IInt8MinMaxCalibrator", "--atol=0.1"]],
    "data": [["--data-loader-script", "script.py", "--iterations=2"]],
    "ranges": [["--val-range", "input:[0,255]", "--seed", "7", "--sequential-runners", "--warm-up=2", "--iterations=2", "--fail-fast", "--validate"]],
    "formats": [["--direct-io", "--tensor-formats", "input:[linear]", "--tensor-datatypes", "input:float32"], ["--pool-limit", "workspace:64M"]],
    "sources": [["--tactic-sources"], ["--tactic-sources", "cublas", "cudnn"], ["--sparse-weights"]],
}


@pytest.mark.parametrize("name", RUNS)
def test_options_of_run(name, folder):
    for more in RUNS[name]:
        passes(folder, "run", "net.onnx", "--trt", "--onnxrt", *more, word="PASSED")


def test_scripts(folder):
    passes(folder, "run", "script.py:load_network", "--model-type", "trt-network-script", "--trt", "--trt-config-script", "script.py:load_config", word="PASSED")
    passes(folder, "run", "net.onnx", "--trt", "--onnxrt", "--gen-script", "generated.py")
    assert "TrtRunner" in (folder / "generated.py").read_text()
    passes(folder, "template", "trt-network", "net.onnx", "-o", "network.py")
    passes(folder, "run", "network.py", "--model-type", "trt-network-script", "--trt", word="PASSED")
    passes(folder, "template", "trt-config", "--fp16", "-o", "config.py")
    passes(folder, "run", "net.onnx", "--trt", "--trt-config-script", "config.py", word="PASSED")


@needs_surgeon
def test_inspect(folder):
    # Without partitions it asks errors for what 8.5 has not.
    assert "fully supported" in passes(folder, "inspect", "capability", "--with-partitioning", "net.onnx").lower()
    unknown = onnx.shape_inference.infer_shapes(onnx.load_from_string(Resnet(size=16).model()))
    unknown.graph.node[2].op_type = unknown.graph.node[2].name = "NobodysOp"
    unknown.graph.node[2].domain = "nobody"
    unknown.opset_import.append(onnx.helper.make_opsetid("nobody", 1))
    onnx.save(unknown, folder / "unknown.onnx")
    assert "NobodysOp" in passes(folder, "inspect", "capability", "--with-partitioning", "unknown.onnx", "-o", "parts")
    passes(folder, "run", "net.onnx", "--trt", "--save-tactics", "tactics.json")
    assert "Tactic:" in passes(folder, "inspect", "tactics", "tactics.json")
    passes(folder, "run", "net.onnx", "--trt", "--save-inputs", "i.json", "--save-outputs", "o.json")
    assert "prob" in passes(folder, "inspect", "data", "o.json", "--all", "--show-values")
    passes(folder, "inspect", "sparsity", "net.onnx")
    passes(folder, "convert", "net.onnx", "-o", "plain.plan", "--profiling-verbosity", "detailed")
    text = passes(folder, "inspect", "model", "plain.plan", "--model-type", "engine", "--show", "layers", "attrs", "weights")
    assert "input" in text and "Tactic" in text


@needs_surgeon
def test_surgeon_and_data(folder):
    passes(folder, "surgeon", "sanitize", "net.onnx", "--fold-constants", "-o", "folded.onnx")
    passes(folder, "run", "folded.onnx", "--trt", "--onnxrt", word="PASSED")
    passes(folder, "surgeon", "extract", "net.onnx", "--inputs", "pool:auto:auto", "--outputs", "block0:auto", "-o", "part.onnx")
    passes(folder, "run", "part.onnx", "--trt", "--onnxrt", "--input-shapes", "pool:[1,16,4,4]", word="PASSED")
    passes(folder, "surgeon", "insert", "net.onnx", "--inputs", "mean", "--outputs", "mean", "--op", "Sigmoid", "-o", "more.onnx")
    passes(folder, "run", "more.onnx", "--trt", "--onnxrt", word="PASSED")
    passes(folder, "run", "net.onnx", "--onnxrt", "--save-inputs", "a.json", "--save-outputs", "b.json", "--onnx-outputs", "mean")
    passes(folder, "data", "merge", "a.json", "b.json", "-o", "merged.json")
    passes(folder, "check", "lint", "net.onnx", "-o", "lint.json")
    assert json.loads((folder / "lint.json").read_text())


@needs_surgeon
def test_debug(folder):
    passes(folder, "debug", "build", "net.onnx", "--until=2", "--save-tactics", "replay.json", "--artifacts", "replay.json", "--check", "true", word="2/2")
    # A check that fails as long as a node is there: reduce finds the smallest model that has it.
    check = ["--check", "sh", "-c", "! grep -qa GlobalAveragePool polygraphy_debug.onnx"]
    passes(folder, "debug", "reduce", "net.onnx", "-o", "small.onnx", "--mode=bisect", *check)
    left = [n.op_type for n in onnx.load(folder / "small.onnx").graph.node]
    assert "GlobalAveragePool" in left and len(left) < 8
    text = passes(folder, "debug", "precision", "net.onnx", "--fp16", "-p", "float32", "--mode=bisect", "--check", "true")
    assert "PASSED" in text


@pytest.mark.skipif(not models(), reason="TENSORWRIGHT_MODELS_DIR names no folder of models")
def test_all_outputs_of_the_models(tmp_path):
    """Every tensor as an output leaves the model's own as they are."""
    _, failures = run_models(tmp_path, "--trt-outputs", "mark", "all")
    assert not failures, json.dumps(failures, indent=1)[-6000:]
