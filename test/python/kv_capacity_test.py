# SPDX-License-Identifier: Apache-2.0
"""Decoders whose caches get longer by Concat, built for caches of a fixed capacity (TENSORWRIGHT_KV_CAPACITY): sequences of different lengths in
one run, each beside ONNX Runtime, which runs the file as it is with the rows that the sequence has."""

import json
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
import tensorrt as trt

onnxruntime = pytest.importorskip("onnxruntime")
decoders = pytest.importorskip("decoders", reason="SKIP: there is no decoders.py, which writes the forms of exporters")
import alibi_decoders  # noqa: E402
import exported_decoders  # noqa: E402
import latent_decoders  # noqa: E402

from tensorwright._model import Logger  # noqa: E402

CAPACITY, LENGTHS = 24, "kv_lengths"
TYPES = {trt.float32: np.float32, trt.float16: np.float16, trt.int8: np.int8, trt.int32: np.int32, trt.bool: bool}


class Engine:
    """Of a file with caches of a fixed capacity; on the CPU."""

    def __init__(self, data, monkeypatch, capacity=CAPACITY, rows=3, new=6):
        monkeypatch.setenv("TENSORWRIGHT_DEVICE", "cpu")
        if capacity is not None:
            monkeypatch.setenv("TENSORWRIGHT_KV_CAPACITY", str(capacity))
        self.logger = Logger()
        try:
            builder = trt.Builder(self.logger)
        except RuntimeError:
            raise self.logger.failure("no builder") from None
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
        parser = trt.OnnxParser(network, self.logger)
        assert parser.parse(data), parser.get_error(0).desc()
        config = builder.create_builder_config()
        config.set_flag(trt.BuilderFlag.INT8)  # where the file quantizes
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        profile = builder.create_optimization_profile()
        for i in range(network.num_inputs):
            tensor = network.get_input(i)
            if -1 in tuple(tensor.shape):
                profile.set_shape(tensor.name, *(self.shape(tensor, b, s) for b, s in ((1, 1), (rows, 1), (rows, new))))
        config.add_optimization_profile(profile)
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise self.logger.failure("no engine")
        monkeypatch.delenv("TENSORWRIGHT_KV_CAPACITY", raising=False)
        monkeypatch.delenv("TENSORWRIGHT_KV_PAGES", raising=False)
        self.engine = trt.Runtime(self.logger).deserialize_cuda_engine(plan)
        self.context = self.engine.create_execution_context()
        self.names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]

    @staticmethod
    def shape(tensor, rows, new):
        shape = list(tensor.shape)
        for d, n in enumerate(shape):
            if n < 0:
                shape[d] = rows if d == 0 else 7 if ".encoder." in tensor.name else new if len(shape) == 2 and "mask" not in tensor.name else CAPACITY
        return shape

    def __call__(self, feed, in_place):
        """Outputs by name. in_place: {input: output} that have one address."""
        arrays = {}
        for name, x in feed.items():
            arrays[name] = np.ascontiguousarray(x, TYPES[self.engine.get_tensor_dtype(name)])
            assert self.context.set_input_shape(name, x.shape), name
            assert self.context.set_tensor_address(name, arrays[name].ctypes.data)
        made = {}
        shared = {o: i for i, o in in_place.items()}
        for name in self.names:
            if self.engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT:
                made[name] = arrays[shared[name]] if name in shared else np.empty(tuple(self.context.get_tensor_shape(name)), TYPES[self.engine.get_tensor_dtype(name)])
                assert self.context.set_tensor_address(name, made[name].ctypes.data)
        assert self.context.execute_async_v3(0), self.logger.errors
        return made


def session_of(data):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # more would only wait for each other
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def check(spec, engine, random, lengths, new, padded, in_place=True, batch=None):
    """One run of `new` tokens behind caches of random rows."""
    rows, kind = len(lengths), getattr(spec, "type", np.float32)
    loose = {np.float16: 100, np.int8: 20}.get(kind, 1)
    session = session_of(getattr(spec, "standard", spec.data))
    ids = random.integers(0, decoders.VOCABULARY, (rows, new))
    pairs = {spec.names[0].format(p): spec.names[1].format(p) for p in spec.past}
    growing = {i: o for i, o in pairs.items() if ".encoder." not in i}
    numbers = (lambda s: random.integers(-90, 91, s)) if kind == np.int8 else random.standard_normal
    caches = {i: numbers(spec.cache(i, rows, CAPACITY if i in growing else spec.encoder)).astype(kind) for i in pairs}
    rows_first = getattr(spec, "rows_first", False)
    turned = lambda x: np.ascontiguousarray(x.swapaxes(1, 2)) if rows_first else x  # noqa: E731
    feed = {"input_ids": ids, LENGTHS: np.array(lengths, np.int32), **{i: turned(c) for i, c in caches.items()}}
    mask = random.integers(0, 2, (rows, CAPACITY))
    if spec.mask:
        for b, n in enumerate(lengths):
            if not padded:
                mask[b, : n + new] = 1
            mask[b, n : n + new] = 1
        feed["attention_mask"] = mask
    places = np.array(lengths)[:, None] + np.arange(new)
    if spec.places:
        feed["position_ids"] = places
    before = {i: c.copy() for i, c in caches.items()}
    out = engine(feed, growing if in_place else {})
    for b, n in enumerate(lengths):
        one = {"input_ids": ids[b : b + 1]}
        if spec.mask:
            one["attention_mask"] = mask[b : b + 1, : n + new].astype(spec.mask_type)
        if spec.places:
            one["position_ids"] = places[b : b + 1]
        one |= {i: turned(c[b : b + 1, :, :n] if i in growing else c[b : b + 1]) for i, c in before.items()}
        names = [o.name for o in session.get_outputs()]
        wanted = dict(zip(names, session.run(names, one)))
        np.testing.assert_allclose(out["logits"][b], wanted["logits"][0], rtol=2e-4 * loose, atol=2e-4 * loose * np.abs(wanted["logits"]).max())
        assert np.ptp(wanted["logits"]) > 0.1
        for i, o in growing.items():
            np.testing.assert_allclose(turned(out[o])[b, :, : n + new], turned(wanted[o])[0], rtol=1e-4 * loose, atol=1 if kind == np.int8 else 1e-4 * loose)
            assert np.array_equal(turned(out[o])[b, :, n + new :], before[i][b, :, n + new :])  # nothing else is written


FORMS = {**decoders.FORMS, **exported_decoders.FORMS, **alibi_decoders.FORMS, **latent_decoders.FORMS}
GROWING = [f for f in FORMS if f not in ("t5", "onnx24")]  # t5: kv_merged_test.py


@pytest.mark.parametrize("form", GROWING)
def test_form(form, monkeypatch):
    spec = FORMS[form]()
    engine, random = Engine(spec.data, monkeypatch), np.random.default_rng(len(form))
    for name in engine.names:
        assert "past" not in name or tuple(engine.engine.get_tensor_shape(name))[2] in (CAPACITY, spec.encoder or CAPACITY)
    for lengths, new in (((0, 0, 0), 5), ((3, 9, 0), 1), ((7,), 1), ((18, 2), 6), ((23, 1, 11), 1), ((5, 17), 3)):
        check(spec, engine, random, lengths, new, padded=False, in_place=new != 3)
    if spec.padded and spec.mask:
        for lengths, new in (((3, 9, 6), 1), ((7, 2), 5)):
            check(spec, engine, random, lengths, new, padded=True)


def small(places="range", masked="triangle", rows_first=False, batch="batch", unnamed=False):
    """A decoder of one layer, in other ways of exporters. places: how they are computed; masked: how what lies behind is hidden."""
    g, d = decoders.Graph(31, opset=17), decoders
    ids = g.input("input_ids", d.INT64, batch, "s")
    mask = g.input("attention_mask", d.INT64, batch, "past + s") if places == "sum" or masked == "mask" else None
    shape = (batch, "past", d.HEADS, d.SIZE) if rows_first else (batch, d.HEADS, "past", d.SIZE)
    past_k, past_v = (g.input(f"past_key_values.0.{n}", d.FLOAT, *shape) for n in ("key", "value"))
    past, s = g.dim(past_k, 1 if rows_first else 2), g.dim(ids, 1)
    total = g.op("Add", past, s)
    zero, one = g.const(np.int64(0)), g.const(np.int64(1))
    x = g.op("Gather", g.weight(d.VOCABULARY, d.WIDTH, scale=1.0), ids)
    table = g.weight(48, d.WIDTH, scale=1.0)
    if places == "sum":  # of the mask
        counts = g.op("Sub", g.op("CumSum", mask, one), one)
        counts = g.op("Max", counts, zero)
        where = g.op("Slice", counts, g.op("Unsqueeze", past, g.ints(0)), g.ints(2**60), g.ints(1), g.ints(1))
    else:
        where = g.op("Unsqueeze", g.op("Range", past, total, one), g.ints(0))
    if places != "rotary":
        x = g.op("Add", x, g.op("Gather", table, where))
    def rows(x):
        y = g.reshape(x, g.dim(x, 0), s, d.HEADS, d.SIZE)
        return y if rows_first else g.op("Transpose", y, perm=[0, 2, 1, 3])
    q, k, v = (rows(g.linear(x, d.WIDTH, d.WIDTH)) for _ in range(3))
    if places == "rotary":
        tables = d.rotary_tables(g, where, d.SIZE)
        q, k = d.rotated(g, q, tables), d.rotated(g, k, tables)
    axis = 1 if rows_first else 2
    k, v = g.op("Concat", past_k, k, axis=axis), g.op("Concat", past_v, v, axis=axis)
    g.output("present.0.key", k), g.output("present.0.value", v)
    if rows_first:
        q, k, v = (g.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, k, v))
    lowest = g.const(np.float32(-1e9))
    if masked == "triangle":  # zeros for the past, a triangle for the new ones
        new = g.op("Range", zero, s, one)
        hidden = g.op("Greater", g.op("Unsqueeze", new, g.ints(0)), g.op("Unsqueeze", new, g.ints(1)))
        hidden = g.op("Mul", g.op("Cast", hidden, to=d.FLOAT), lowest)
        seen = g.op("ConstantOfShape", g.shape(s, past), value=onnx.numpy_helper.from_array(np.zeros(1, np.float32)))
        added = g.op("Unsqueeze", g.op("Concat", seen, hidden, axis=-1), g.ints(0, 1))
    else:
        keys, queries = g.op("Range", zero, total, one), g.op("Range", past, total, one)
        hidden = g.op("Greater", g.op("Unsqueeze", keys, g.ints(0)), g.op("Unsqueeze", queries, g.ints(1)))
        added = g.op("Unsqueeze", g.op("Mul", g.op("Cast", hidden, to=d.FLOAT), lowest), g.ints(0, 1))
        if masked == "mask":
            padding = g.op("Mul", g.op("Sub", 1.0, g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=d.FLOAT)), lowest)
            added = g.op("Max", g.op("Add", added, padding), lowest)
    x = g.op("Add", x, g.linear(d.attention(g, q, k, v, added), d.WIDTH, d.WIDTH))
    g.output("logits", g.linear(d.layer_norm(g, x), d.WIDTH, d.VOCABULARY))
    data = g.bytes()
    if unnamed:
        model = onnx.load_from_string(data)
        for i in model.graph.input:
            for dim in i.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.ClearField("dim_param")
        data = model.SerializeToString()
    spec = d.Spec(data, d.HEADS, past=["0.key", "0.value"], mask=mask is not None, places=False)
    spec.rows_first = rows_first
    return spec


@pytest.mark.parametrize("places", ["range", "sum", "rotary"])
@pytest.mark.parametrize("masked", ["triangle", "range", "mask"])
@pytest.mark.parametrize("how", ["", "rows_first", "one", "unnamed"])
def test_small(places, masked, how, monkeypatch):
    if how == "rows_first" and places == "rotary":
        pytest.skip("SKIP: torch turns heads that stand in front of rows")
    spec = small(places, masked, how == "rows_first", 1 if how == "one" else "batch", how == "unnamed")
    engine, random = Engine(spec.data, monkeypatch), np.random.default_rng(len(places + masked))
    for lengths, new in (((0, 0, 0), 4), ((3, 9, 0), 1), ((7,), 1), ((18, 2), 6), ((5, 17, 11), 3)):
        check(spec, engine, random, lengths[:1] if how == "one" else lengths, new, padded=masked == "mask" and new != 3)


def test_half(monkeypatch):
    """Files in FP16: caches are, too."""
    spec = decoders.FORMS["llama"]()
    spec.data, spec.type = decoders.in_half(spec.data), np.float16
    engine = Engine(spec.data, monkeypatch)
    check(spec, engine, np.random.default_rng(5), (3, 9, 0), 1, padded=False)
    check(spec, engine, np.random.default_rng(6), (18, 2), 6, padded=True)


def in_bytes(spec, per_head=True):
    """Caches of INT8: what goes into them is quantized, and what comes out is dequantized."""
    model, random = onnx.load_from_string(spec.data), np.random.default_rng(3)
    graph, nodes = model.graph, []
    joins = {n.output[0]: n for n in graph.node if n.op_type == "Concat" and n.input[0].startswith("past")}
    presents = {n.input[0]: n.output[0] for n in graph.node if n.op_type == "Identity" and n.input[0] in joins}
    for node in graph.node:
        if node.output[0] not in joins:
            if node.output[0] not in presents.values():
                node.input[:] = [f"{presents[i]} floats" if i in joins else i for i in node.input]
                nodes.append(node)
            continue
        node.output[0] = presents[node.output[0]]
        name = node.output[0]
        scale = random.uniform(0.02, 0.04, spec.heads if per_head else ()).astype(np.float32)
        zero = np.zeros(scale.shape, np.int8)
        graph.initializer.extend([onnx.numpy_helper.from_array(scale, f"{name} scale"), onnx.numpy_helper.from_array(zero, f"{name} zero")])
        more = [f"{name} scale", f"{name} zero"]
        nodes.append(onnx.helper.make_node("QuantizeLinear", [node.input[1], *more], [f"{name} new"], name=f"{name} q", axis=1))
        node.input[1] = f"{name} new"
        nodes.append(node)
        nodes.append(onnx.helper.make_node("DequantizeLinear", [name, *more], [f"{name} floats"], name=f"{name} dq", axis=1))
    del graph.node[:]
    graph.node.extend(nodes)
    for value in (*graph.input, *graph.output):
        if value.name.startswith(("past", "present")):
            value.type.tensor_type.elem_type = onnx.TensorProto.INT8
    assert len(presents) == len(spec.past)
    spec.data, spec.type = model.SerializeToString(), np.int8
    return spec


@pytest.mark.parametrize("form", ["llama", "gpt2", "gemma"])
@pytest.mark.parametrize("per_head", [True, False])
def test_bytes(form, per_head, monkeypatch):
    spec = in_bytes(decoders.FORMS[form](), per_head)
    engine, random = Engine(spec.data, monkeypatch), np.random.default_rng(7)
    for lengths, new in (((3, 9, 0), 1), ((18, 2), 6), ((23, 1, 11), 1)):
        check(spec, engine, random, lengths, new, padded=False)
    found = json.loads(engine.engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert [layer["Attributes"]["scales"] for layer in found["Layers"] if layer["Op"] == "attention"] == [1, 1]
    assert not [layer for layer in found["Layers"] if layer["Op"] == "dequantize"] and len(found["Caches"]) == 4


def test_lengths_beyond(monkeypatch):
    """Rows outside are not written, other sequences do not notice."""
    spec = decoders.FORMS["llama"]()
    engine, random = Engine(spec.data, monkeypatch), np.random.default_rng(1)
    def feed(lengths):
        caches = {spec.names[0].format(p): np.ones((3, spec.heads, CAPACITY, spec.size), np.float32) for p in spec.past}
        return {"input_ids": ids, "attention_mask": np.ones((3, CAPACITY)), "position_ids": np.zeros((3, 2)), LENGTHS: np.array(lengths, np.int32), **caches}
    ids = random.integers(0, decoders.VOCABULARY, (3, 2))
    wanted = engine(feed((4, 4, 4)), {})
    for n in (-3, CAPACITY - 1, CAPACITY, 2**31 - 2):
        found = engine(feed((4, n, 4)), {})
        assert np.array_equal(found["logits"][[0, 2]], wanted["logits"][[0, 2]])
        written = (found["present.0.key"][1] != 1).any(axis=(0, 2))
        assert written.tolist() == [n <= j < n + 2 for j in range(CAPACITY)]


def changed(form, change):
    model = onnx.load_from_string(decoders.FORMS[form]().data)
    change(model.graph)
    return model.SerializeToString()


def reads_cache(graph):
    graph.node.append(onnx.helper.make_node("ReduceMean", ["past_key_values.1.key"], ["mean"], name="odd", axes=[2]))
    graph.output.append(onnx.helper.make_tensor_value_info("mean", onnx.TensorProto.FLOAT, None))


def reads_present(graph):
    graph.node.append(onnx.helper.make_node("ReduceMax", ["present.1.key"], ["most"], name="odd", axes=[2]))
    graph.output.append(onnx.helper.make_tensor_value_info("most", onnx.TensorProto.FLOAT, None))


def gives_length(graph):
    graph.node.append(onnx.helper.make_node("Shape", ["present.1.key"], ["size"]))
    graph.output.append(onnx.helper.make_tensor_value_info("size", onnx.TensorProto.INT64, None))


def has_lengths(graph):
    graph.input.append(onnx.helper.make_tensor_value_info(LENGTHS, onnx.TensorProto.FLOAT, [1]))
    graph.node.append(onnx.helper.make_node("Identity", [LENGTHS], ["same"]))
    graph.output.append(onnx.helper.make_tensor_value_info("same", onnx.TensorProto.FLOAT, None))


@pytest.mark.parametrize("change, what", [
    (reads_cache, "layer 'odd' .*reads the cache 'past_key_values.1.key' beside what puts new rows behind it.*caches \\('past_key_values.0.key'"),
    (reads_present, "layer 'odd' .*only sums are taken"),
    (gives_length, "output 'size' .* depends on the length of the caches"),
    (has_lengths, "has an input 'kv_lengths' already"),
])
def test_refused(change, what, monkeypatch):
    with pytest.raises(RuntimeError, match=what):
        Engine(changed("llama", change), monkeypatch)


@pytest.mark.parametrize("form, capacity, what", [
    ("gpt2", 65, r"behind 65 rows the model reckons with .*min\(.*64"),
    ("whisper", 41, r"behind 41 rows the model reckons with .*min\(.*40"),
    ("onnx24", 24, "none that get longer"),
    ("llama", 5, "input 'input_ids' may have 6 new rows in a profile, the caches have room for 5"),
    ("llama", 0, "TENSORWRIGHT_KV_CAPACITY=0 must be a number from 1 to 16777216"),
    ("llama", "4k", "TENSORWRIGHT_KV_CAPACITY=4k must be a number"),
])
def test_refused_capacity(form, capacity, what, monkeypatch):
    with pytest.raises(Exception, match=what):
        Engine(decoders.FORMS[form]().data, monkeypatch, capacity)


@pytest.mark.parametrize("form", ["gpt2", "llama"])
@pytest.mark.parametrize("capacity", [1, 2, 3, 4, 5])
def test_few_rows(form, capacity, monkeypatch):
    spec = decoders.FORMS[form]()
    engine, random = Engine(spec.data, monkeypatch, capacity, rows=2, new=1), np.random.default_rng(capacity)
    ids, at = random.integers(0, decoders.VOCABULARY, (2, 1)), [0, capacity - 1]
    caches = {spec.names[0].format(p): random.standard_normal((2, spec.heads, capacity, spec.size)).astype(np.float32) for p in spec.past}
    places = np.array(at)[:, None]
    found = engine({"input_ids": ids, "attention_mask": np.ones((2, capacity)), "position_ids": places, LENGTHS: np.array(at), **caches}, {})
    for b, n in enumerate(at):
        one = {"input_ids": ids[b : b + 1], "attention_mask": np.ones((1, n + 1), np.int64), "position_ids": places[b : b + 1]}
        wanted = session_of(spec.data).run(["logits"], one | {i: c[b : b + 1, :, :n] for i, c in caches.items()})[0]
        np.testing.assert_allclose(found["logits"][b], wanted[0], rtol=1e-3, atol=1e-4)


def test_inspector(monkeypatch):
    engine = Engine(decoders.FORMS["llama"]().data, monkeypatch).engine
    assert engine.get_tensor_mode(LENGTHS) == trt.TensorIOMode.INPUT and engine.get_tensor_dtype(LENGTHS) == trt.int32
    found = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert sorted(found["Caches"], key=lambda c: c["Input"])[0] == {
        "Input": "past_key_values.0.key", "Output": "present.0.key", "Axis": 2, "Capacity": CAPACITY, "WriteIndex": LENGTHS}
    assert len(found["Caches"]) == 4
    kinds = [layer["Op"] for layer in found["Layers"]]
    assert kinds.count("attention") == 2 and kinds.count("cache_update") == 4 and "softmax" not in kinds


def test_trtexec(tmp_path):
    program = pathlib.Path(trt.__file__).parents[2] / "bin" / "trtexec"
    if not program.exists():
        pytest.skip("SKIP: there is no trtexec beside the module")
    spec, new = decoders.FORMS["llama"](), 2
    (tmp_path / "m.onnx").write_bytes(spec.data)
    past = ",".join(f"{spec.names[0].format(p)}:3x{spec.heads}x5x{spec.size}" for p in spec.past)  # rows are those of the engine
    shapes = f"input_ids:3x{new},attention_mask:3x7,position_ids:3x{new},{past}"
    feed = {"input_ids": np.arange(6), "position_ids": np.array([4, 5, 0, 1, 9, 10]), LENGTHS: np.array([4, 0, 9])}
    feed["attention_mask"] = np.ones(3 * CAPACITY)
    for p in spec.past:
        feed[spec.names[0].format(p)] = np.random.default_rng(1).standard_normal(3 * spec.heads * CAPACITY * spec.size)
    for name, x in feed.items():
        x.astype(np.float32 if "past" in name else np.int32).tofile(tmp_path / name)
    inputs = ",".join(f"{n}:{tmp_path / n}" for n in feed)
    run = subprocess.run([program, "--device=cpu", f"--kvCapacity={CAPACITY}", f"--onnx={tmp_path / 'm.onnx'}", f"--shapes={shapes}", f"--loadInputs={inputs}",
                          f"--exportOutput={tmp_path / 'out.json'}", "--iterations=1", "--duration=0", "--warmUp=0"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:]
    logits = next(t for t in json.loads((tmp_path / "out.json").read_text()) if t["name"] == "logits")
    for b, n in enumerate(feed[LENGTHS]):
        one = {"input_ids": feed["input_ids"].reshape(3, new)[b : b + 1], "position_ids": feed["position_ids"].reshape(3, new)[b : b + 1],
               "attention_mask": np.ones((1, n + new), np.int64)}
        for p in spec.past:
            name = spec.names[0].format(p)
            one[name] = feed[name].reshape(3, spec.heads, CAPACITY, spec.size)[b : b + 1, :, :n].astype(np.float32)
        wanted = session_of(spec.data).run(["logits"], one)[0][0]
        np.testing.assert_allclose(np.array(logits["values"]).reshape(3, new, -1)[b], wanted, rtol=1e-3, atol=1e-3)
