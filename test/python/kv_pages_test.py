# SPDX-License-Identifier: Apache-2.0
"""Decoders whose caches get longer by Concat, built for caches in pages (TENSORWRIGHT_KV_PAGES beside TENSORWRIGHT_KV_CAPACITY): blocks of 16 rows that
sequences have in any order, each sequence beside ONNX Runtime, which runs the file as it is."""

import json
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
import tensorrt as trt

pytest.importorskip("onnxruntime")
decoders = pytest.importorskip("decoders", reason="SKIP: there is no decoders.py, which writes the forms of exporters")

import kv_capacity_test as fixed  # noqa: E402

CAPACITY, ROWS, BLOCKS, LENGTHS, PAGES = 48, 16, 13, "kv_lengths", "kv_pages"


def engine_of(data, monkeypatch, capacity=CAPACITY, blocks=BLOCKS, **more):
    monkeypatch.setenv("TENSORWRIGHT_KV_PAGES", str(blocks))
    return fixed.Engine(data, monkeypatch, capacity, **more)


def rows_of(blocks, pages):
    """Rows of sequences, [B, heads, rows, size], out of blocks."""
    return np.concatenate(list(blocks[pages].swapaxes(0, 1)), 2)


def put(blocks, pages, rows):
    for b, of in enumerate(pages):
        for p, block in enumerate(of):
            blocks[block] = rows[b, :, p * ROWS : (p + 1) * ROWS]


def check(spec, engine, random, lengths, new, padded, in_place=True):
    """One run of `new` tokens behind caches of random rows."""
    rows, kind = len(lengths), getattr(spec, "type", np.float32)
    loose = {np.float16: 100, np.int8: 20}.get(kind, 1)
    session = fixed.session_of(getattr(spec, "standard", spec.data))
    ids = random.integers(0, decoders.VOCABULARY, (rows, new))
    pairs = {spec.names[0].format(p): spec.names[1].format(p) for p in spec.past}
    numbers = (lambda s: random.integers(-90, 91, s)) if kind == np.int8 else random.standard_normal
    pages = random.permutation(BLOCKS)[: rows * CAPACITY // ROWS].reshape(rows, -1)
    blocks = {i: numbers(spec.cache(i, BLOCKS, ROWS)).astype(kind) for i in pairs}
    given = pages.copy()
    for b, n in enumerate(lengths):  # blocks that nothing is in yet are none
        given[b, -(-(n + new) // ROWS) :] = random.choice([-1, BLOCKS, 2**31 - 1, -(2**31)])
    feed = {"input_ids": ids, LENGTHS: np.array(lengths, np.int32), PAGES: given, **{i: c.copy() for i, c in blocks.items()}}
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
    out = engine(feed, pairs if in_place else {})
    caches = {i: rows_of(c, pages) for i, c in blocks.items()}
    for b, n in enumerate(lengths):
        one = {"input_ids": ids[b : b + 1]}
        if spec.mask:
            one["attention_mask"] = mask[b : b + 1, : n + new].astype(spec.mask_type)
        if spec.places:
            one["position_ids"] = places[b : b + 1]
        names = [o.name for o in session.get_outputs()]
        wanted = dict(zip(names, session.run(names, one | {i: c[b : b + 1, :, :n] for i, c in caches.items()})))
        np.testing.assert_allclose(out["logits"][b], wanted["logits"][0], rtol=2e-4 * loose, atol=2e-4 * loose * np.abs(wanted["logits"]).max())
        assert np.ptp(wanted["logits"]) > 0.1
        for i, o in pairs.items():
            found = rows_of(out[o], pages[b : b + 1])[0, :, n : n + new]
            np.testing.assert_allclose(found, wanted[o][0, :, n:], rtol=1e-4 * loose, atol=1 if kind == np.int8 else 1e-4 * loose)
            caches[i][b, :, n : n + new] = found
    for i, o in pairs.items():  # nothing else is written
        put(blocks[i], pages, caches[i])
        assert np.array_equal(out[o], blocks[i])


PAGED = [f for f in fixed.GROWING if f != "whisper" and not f.startswith("latent")]  # test_refused has these


@pytest.mark.parametrize("form", PAGED)
def test_form(form, monkeypatch):
    spec = fixed.FORMS[form]()
    engine, random = engine_of(spec.data, monkeypatch), np.random.default_rng(len(form))
    for lengths, new in (((0, 0, 0), 5), ((16, 31, 15), 1), ((7,), 1), ((42, 2), 6), ((47, 1, 11), 1), ((14, 30), 3)):
        check(spec, engine, random, lengths, new, padded=False, in_place=new != 3)
    if spec.padded and spec.mask:
        for lengths, new in (((3, 29, 6), 1), ((37, 2), 5)):
            check(spec, engine, random, lengths, new, padded=True)


@pytest.mark.parametrize("places", ["range", "sum", "rotary"])
@pytest.mark.parametrize("masked", ["triangle", "range", "mask"])
@pytest.mark.parametrize("how", ["", "unnamed"])
def test_small(places, masked, how, monkeypatch):
    spec = fixed.small(places, masked, unnamed=how == "unnamed")
    engine, random = engine_of(spec.data, monkeypatch), np.random.default_rng(len(places + masked))
    for lengths, new in (((0, 0, 0), 4), ((3, 31, 0), 1), ((7,), 1), ((38, 2), 6), ((5, 17, 11), 3)):
        check(spec, engine, random, lengths, new, padded=masked == "mask" and new != 3)


def test_half(monkeypatch):
    spec = decoders.FORMS["llama"]()
    spec.data, spec.type = decoders.in_half(spec.data), np.float16
    engine = engine_of(spec.data, monkeypatch)
    check(spec, engine, np.random.default_rng(5), (3, 29, 0), 1, padded=False)
    check(spec, engine, np.random.default_rng(6), (38, 2), 6, padded=True)


@pytest.mark.parametrize("form", ["llama", "gpt2", "gemma"])
@pytest.mark.parametrize("per_head", [True, False])
def test_bytes(form, per_head, monkeypatch):
    spec = fixed.in_bytes(decoders.FORMS[form](), per_head)
    engine, random = engine_of(spec.data, monkeypatch), np.random.default_rng(7)
    for lengths, new in (((3, 29, 0), 1), ((38, 2), 6), ((47, 1, 11), 1)):
        check(spec, engine, random, lengths, new, padded=False)
    found = json.loads(engine.engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert [layer["Attributes"]["scales"] for layer in found["Layers"] if layer["Op"] == "attention"] == [1, 1]
    assert not [layer for layer in found["Layers"] if layer["Op"] == "dequantize"] and len(found["Caches"]) == 4


def test_shared_blocks(monkeypatch):
    """Two sequences that begin alike have the beginning once."""
    spec = decoders.FORMS["llama"]()
    engine, random = engine_of(spec.data, monkeypatch), np.random.default_rng(3)
    ids = random.integers(0, decoders.VOCABULARY, (2, 1))
    blocks = {spec.names[0].format(p): random.standard_normal((BLOCKS, spec.heads, ROWS, spec.size)).astype(np.float32) for p in spec.past}
    feed = {"input_ids": ids, "attention_mask": np.ones((2, CAPACITY)), "position_ids": np.full((2, 1), 35), LENGTHS: np.array([35, 35]), **blocks}
    for i in blocks:
        blocks[i][8] = blocks[i][4]
        blocks[i][9] = blocks[i][6]
    shared = engine(feed | {PAGES: np.array([[4, 6, 1], [4, 6, 2]])}, {})["logits"]
    apart = engine(feed | {PAGES: np.array([[4, 6, 1], [8, 9, 2]])}, {})["logits"]
    assert np.array_equal(shared, apart) and not np.array_equal(shared[0], shared[1])


def in_place(rows=CAPACITY):
    """A model of ONNX 24 whose caches are written by TensorScatter, with so many rows."""
    model = onnx.load_from_string(decoders.FORMS["onnx24"]().data)
    for value in (*model.graph.input, *model.graph.output):
        if value.name.startswith(("past", "present")):
            value.type.tensor_type.shape.dim[2].dim_value = rows
    return model


def test_caches_in_place(monkeypatch):
    """Caches of a fixed length in the model, beside an engine of the same model without pages."""
    spec, data, random = decoders.FORMS["onnx24"](), in_place().SerializeToString(), np.random.default_rng(11)
    paged, plain = engine_of(data, monkeypatch), fixed.Engine(data, monkeypatch, None)
    pairs = {spec.names[0].format(p): spec.names[1].format(p) for p in spec.past}
    for lengths, new in (((0, 0, 0), 5), ((16, 31, 15), 1), ((7,), 1), ((42, 2), 6)):
        rows, at = len(lengths), np.array(lengths)
        pages = random.permutation(BLOCKS)[: rows * CAPACITY // ROWS].reshape(rows, -1)
        blocks = {i: random.standard_normal((BLOCKS, spec.heads, ROWS, spec.size)).astype(np.float32) for i in pairs}
        feed = {"input_ids": random.integers(0, decoders.VOCABULARY, (rows, new)), "position_ids": at[:, None] + np.arange(new), "write_indices": at, "lengths": at + new}
        wanted = plain(feed | {i: rows_of(b, pages) for i, b in blocks.items()}, pairs)
        found = paged(feed | {PAGES: pages} | {i: b.copy() for i, b in blocks.items()}, pairs)
        np.testing.assert_allclose(found["logits"], wanted["logits"], rtol=1e-4, atol=1e-4)
        for i, o in pairs.items():
            put(blocks[i], pages, wanted[o])
            np.testing.assert_allclose(found[o], blocks[i], rtol=1e-5, atol=1e-5)


def changed_in_place(change=lambda graph: None, rows=CAPACITY):
    model = in_place(rows)
    change(model.graph)
    return model.SerializeToString()


def test_inspector(monkeypatch):
    engine = engine_of(decoders.FORMS["llama"]().data, monkeypatch).engine
    assert tuple(engine.get_tensor_shape(PAGES)) == (-1, CAPACITY // ROWS) and engine.get_tensor_dtype(PAGES) == trt.int32
    found = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert sorted(found["Caches"], key=lambda c: c["Input"])[0] == {
        "Input": "past_key_values.0.key", "Output": "present.0.key", "Axis": 2, "Capacity": CAPACITY, "WriteIndex": LENGTHS,
        "Pages": PAGES, "Blocks": BLOCKS, "RowsOfBlock": ROWS}
    kinds = [layer["Op"] for layer in found["Layers"]]
    assert kinds.count("attention") == 2 and kinds.count("cache_update") == 4 and "softmax" not in kinds


def has_pages(graph):
    graph.input.append(onnx.helper.make_tensor_value_info(PAGES, onnx.TensorProto.FLOAT, [1]))
    graph.node.append(onnx.helper.make_node("Identity", [PAGES], ["same"]))
    graph.output.append(onnx.helper.make_tensor_value_info("same", onnx.TensorProto.FLOAT, None))


@pytest.mark.parametrize("data, more, what", [
    (lambda: decoders.FORMS["llama"]().data, {"capacity": 40}, "pages of 16 rows have a capacity of a multiple of that, not 40"),
    (lambda: decoders.FORMS["llama"]().data, {"blocks": 0}, "TENSORWRIGHT_KV_PAGES=0 must be a number from 1"),
    (lambda: fixed.changed("llama", fixed.reads_cache), {}, "layer 'odd' .*'past_key_values.1.key'"),
    (lambda: fixed.changed("llama", fixed.reads_present), {}, "layer 'odd' .*whose rows are in pages, otherwise than attention does"),
    (lambda: fixed.changed("llama", has_pages), {}, "has an input 'kv_pages' already"),
    (lambda: changed_in_place(rows=40), {}, "cache 'past_key_values.0.key' has 40 rows; in pages all caches have as many, a multiple of 16"),
    (lambda: changed_in_place(fixed.reads_present), {}, "\\(reduce\\) reads the cache 'past_key_values.1.key', whose rows are in pages, otherwise than attention"),
    (lambda: changed_in_place(has_pages), {}, "has an input 'kv_pages' already"),
    (lambda: fixed.FORMS["latent_flat"]().data, {}, "\\(matrix_multiply\\): it reads 'present.0.key', whose rows are in pages, otherwise than attention does"),
    (lambda: decoders.FORMS["onnx24"]().data, {}, "none that get longer"),
    (lambda: fixed.small(rows_first=True).data, {}, "has rows in front of heads, and cannot be in pages"),
])
def test_refused(data, more, what, monkeypatch):
    with pytest.raises(Exception, match=what):
        engine_of(data(), monkeypatch, **more)


def test_pages_alone(monkeypatch):
    monkeypatch.setenv("TENSORWRIGHT_KV_PAGES", "8")
    monkeypatch.setenv("TENSORWRIGHT_DEVICE", "cpu")
    logger = fixed.Logger()
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (1,))).get_output(0))
    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    assert "TENSORWRIGHT_KV_PAGES=8 is beside TENSORWRIGHT_KV_CAPACITY" in str(logger.failure("no engine"))


def test_trtexec(tmp_path):
    program = pathlib.Path(trt.__file__).parents[2] / "bin" / "trtexec"
    if not program.exists():
        pytest.skip("SKIP: there is no trtexec beside the module")
    spec, new, random = decoders.FORMS["llama"](), 2, np.random.default_rng(1)
    (tmp_path / "m.onnx").write_bytes(spec.data)
    past = ",".join(f"{spec.names[0].format(p)}:3x{spec.heads}x5x{spec.size}" for p in spec.past)  # blocks are those of the engine
    shapes = f"input_ids:3x{new},attention_mask:3x7,position_ids:3x{new},{past}"
    pages, lengths = random.permutation(BLOCKS)[:9].reshape(3, 3), np.array([20, 0, 46])
    feed = {"input_ids": np.arange(6), "position_ids": (lengths[:, None] + np.arange(new)).ravel(), LENGTHS: lengths, PAGES: pages}
    feed["attention_mask"] = np.ones(3 * CAPACITY)
    for p in spec.past:
        feed[spec.names[0].format(p)] = random.standard_normal((BLOCKS, spec.heads, ROWS, spec.size))
    for name, x in feed.items():
        x.astype(np.float32 if "past" in name else np.int32).tofile(tmp_path / name)
    inputs = ",".join(f"{n}:{tmp_path / n}" for n in feed)
    run = subprocess.run([program, "--device=cpu", f"--kvCapacity={CAPACITY}", f"--kvPages={BLOCKS}", f"--onnx={tmp_path / 'm.onnx'}", f"--shapes={shapes}",
                          f"--loadInputs={inputs}", f"--exportOutput={tmp_path / 'out.json'}", "--iterations=1", "--duration=0", "--warmUp=0"],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:]
    logits = next(t for t in json.loads((tmp_path / "out.json").read_text()) if t["name"] == "logits")
    for b, n in enumerate(lengths):
        one = {"input_ids": feed["input_ids"].reshape(3, new)[b : b + 1], "position_ids": feed["position_ids"].reshape(3, new)[b : b + 1],
               "attention_mask": np.ones((1, n + new), np.int64)}
        for p in spec.past:
            name = spec.names[0].format(p)
            one[name] = rows_of(feed[name].astype(np.float32), pages[b : b + 1])[:, :, :n]
        wanted = fixed.session_of(getattr(spec, "standard", spec.data)).run(["logits"], one)[0][0]
        np.testing.assert_allclose(np.array(logits["values"]).reshape(3, new, -1)[b], wanted, rtol=1e-3, atol=1e-3)
