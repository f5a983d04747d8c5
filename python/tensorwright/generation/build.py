# SPDX-License-Identifier: Apache-2.0
"""From a decoder's ONNX file to the plan of an engine with caches of fixed capacity, kept on disk by content.

A model that concatenates past and new keys gives a longer cache at each step. Here the new keys are what it gives: TensorScatter writes them
into the cache that went in, which is then one buffer for ever, with a place of its own for each sequence; what of it holds nothing is masked.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
from dataclasses import asdict, dataclass

import numpy as np
import tensorrt as trt

from .. import _memory, _plans
from .._compile import PRECISIONS, Progress
from .._model import Logger, Model, write
from .files import embeddings_beside
from .importing import imported
from .interface import INDEX, Interface, Source, interface_of, source_of, tensors_of_network

log = logging.getLogger("tensorwright")
# Tokens of a cache that engines are tuned for, and the smallest bucket of a cache that grows with its sequences.
USUAL, SMALLEST = 256, 64
# Tokens of a block of caches in pages.
ROWS = 16


def blocks_of(tokens: int) -> int:
    """Blocks that so many tokens take."""
    return -(-tokens // ROWS)


@dataclass(frozen=True)
class Plan:
    """What an engine is for. in_place: caches of fixed capacity are wanted, also of a model whose own get longer; slots: rows; chunk: tokens
    of a prompt that go in at a time; capacity: tokens of a sequence at most; limit: of past and new ones together, where the model has one (a
    triangle of constants, say); 0: none; sources: the least and the most that an encoder gives; first: the engine makes the caches that
    another one has; blocks: of caches in pages, 0: there are none; wanted:
    pages are asked for, also where there is no fast kernel for them; capped: caches that get longer in the model have room for `capacity` tokens from the
    beginning, and each row has its own length."""

    in_place: bool
    slots: int
    chunk: int
    capacity: int
    limit: int
    precision: str
    device: str
    sources: tuple[int, int] = (0, 0)
    first: bool = False
    blocks: int = 0
    wanted: bool = False
    capped: bool = False

    @property
    def rows(self) -> int:
        """Tokens that the pages of a sequence have room for."""
        return blocks_of(self.capacity) * ROWS

    @property
    def most(self) -> int:
        """Tokens that a cache has room for at most."""
        return min(self.capacity, self.limit - 1) if self.limit else self.capacity

    @property
    def deep(self) -> int:
        """The same with a piece of a prompt behind them."""
        return min(self.capacity, self.limit - self.chunk) if self.limit else self.capacity


def decoder(path: str, plan: Plan, config: dict, cache, progress) -> Model:
    """The engine, built or from disk."""
    embeddings = embeddings_beside(path)
    return kept(
        path,
        {"generation": asdict(plan), "config": config, "embeddings": embeddings and _plans.key(embeddings, {})},
        plan,
        cache,
        progress,
        lambda logger: _build(path, plan, config, logger),
    )


def encoder(path: str, plan: Plan, sizes: dict[int, int], cache, progress) -> Model:
    """The engine of an encoder. sizes: of axes of features that the file leaves open; tokens: plan.sources says how many."""
    return kept(
        path,
        {"encoder": (plan.sources, sizes, plan.precision, plan.device)},
        plan,
        cache,
        progress,
        lambda logger: _build_encoder(path, plan, sizes, logger),
    )


def kept(source, options, plan: Plan, cache, progress, build) -> Model:
    """The engine that build(logger) makes the plan of, or that was made before of the same source and options. Its weights stay in the file
    as long as it lives, so that processes share them."""
    path = _plans.place(cache, _plans.key(source, {**options, "made by": _made_by()})) if cache else None
    refusal = f"{path}.refused" if path and (plan.blocks or plan.capped) else None
    if refusal and os.path.exists(refusal):
        with open(refusal, encoding="utf-8") as file:
            raise RuntimeError(file.read())
    if path and os.path.exists(path):
        try:
            return Model(_mapped(path), plan.device)
        except (RuntimeError, ValueError, OSError) as error:
            log.warning("the kept engine %s cannot be used and is built again: %s", path, error)
    with Progress(source, progress) as shown:
        try:
            data = build(shown.logger)
        except RuntimeError as error:
            if refusal:  # what is tried first, and may well be refused, is not tried again
                _kept_anyway(refusal, str(error).encode())
            raise
    if path:
        data = _kept_anyway(path, data)
    return Model(data, plan.device)


def _kept_anyway(path: str, data: bytes):
    """The data, in a file if that can be."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path, data)
        return _mapped(path)
    except (OSError, ValueError) as error:
        log.warning("the engine is not kept: %s", error)
        return data


def _made_by() -> str:
    """What changes with the networks that this folder makes."""
    total = hashlib.sha256()
    for name in ("build.py", "importing.py", "interface.py", "sampling.py", "beams.py"):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def _mapped(path: str) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _serialized(builder, network, config, logger) -> bytes:
    data = builder.build_serialized_network(network, config)
    if data is None:
        raise logger.failure("the engine could not be built")
    return bytes(data)


def _permit(settings, precision: str) -> None:
    """Of "fp32" factors are not rounded to TF32 either: its tokens are those of FP32."""
    for flag in PRECISIONS[precision]:
        settings.set_flag(flag)
    if precision == "fp32":
        settings.clear_flag(trt.BuilderFlag.TF32)


def _build_encoder(path: str, plan: Plan, sizes: dict[int, int], logger: Logger) -> bytes:
    with _memory.chosen(plan.device):
        builder, network, settings, _ = imported(path, logger)
        source = source_of(tensors_of_network(network))
        _keep_outputs(network, {source.states})
        _permit(settings, plan.precision)
        least, most = plan.sources
        if source.features:
            shapes = [{source.name: _sized(source, sizes)}] * 3
        else:
            shapes = [{n: (1, count) for n in (source.name, source.mask) if n} for count in (least, min(USUAL, most), most)]
        settings.add_optimization_profile(_profile(builder, network, shapes))
        return _serialized(builder, network, settings, logger)


def _sized(source: Source, sizes: dict[int, int]) -> tuple[int, ...]:
    """The shape of one source of features."""
    shape = tuple(1 if i == 0 else sizes.get(i, 0) if n < 0 else n for i, n in enumerate(source.shape))
    if min(shape) <= 0:
        raise ValueError(
            f"input {source.name!r} of the encoder has the shape {list(source.shape)}; a config.json beside the model has to say what is open"
        )
    return shape


def _keep_outputs(network, names: set) -> None:
    for tensor in [network.get_output(i) for i in range(network.num_outputs)]:
        if tensor.name not in names:
            network.unmark_output(tensor)


def _build(path: str, plan: Plan, config: dict, logger: Logger, static: bool = False) -> bytes:
    """static: the caches are of a fixed length, and are written where all sequences are as long; now each has its own length."""
    rows = plan.capacity if plan.capped else plan.rows if plan.blocks or static else 0
    sizes = {"TENSORWRIGHT_KV_CAPACITY": str(rows)} if rows else {}
    pages = {"TENSORWRIGHT_KV_PAGES": str(plan.blocks)} if plan.blocks else {}
    with _memory.chosen(plan.device, **sizes, **pages):
        builder, network, settings, _ = imported(path, logger, embeddings_beside(path))
        found = interface_of(tensors_of_network(network), config)
        if found.counts and not sizes:
            return _build(path, plan, config, logger, True)
        if found.batch > 1:
            raise ValueError(f"{path}: input {found.ids!r} has a batch of {found.batch}; 1, or any number, is expected")
        grows = bool(found.caches) and _grows(network, found)
        if not plan.first:
            _keep_outputs(network, {found.logits, *(c.present for c in (*found.caches, *found.crosses))})
        if plan.blocks or plan.capped:
            _check_kept(found, plan, grows)
        if plan.blocks or static:
            if not grows:
                found = _fixed(network, found, plan.rows, config)
        # Without a mask what a cache holds beyond a sequence would count.
        if not plan.blocks and not plan.capped and plan.in_place and grows and found.mask and not found.order:
            _graft(network, found)
            found = interface_of(tensors_of_network(network), config)
        _last_logits(network, found)
        _permit(settings, plan.precision)
        for shapes in profiles(found, plan, grows):
            settings.add_optimization_profile(_profile(builder, network, shapes))
        return _serialized(builder, network, settings, logger)


def _check_kept(found: Interface, plan: Plan, grows: bool) -> None:
    """Refuses what cannot be rebuilt for caches in pages, or of a capacity, or is better off without."""
    if not found.caches or (plan.capped and not grows) or (found.crossed or found.order) and not plan.sources[1]:
        raise RuntimeError("no caches of a decoder get longer, or they do for all sequences alike")
    kind = found.tensors[found.caches[0].past].dtype
    if not plan.wanted and kind not in ((trt.float32, trt.float16, trt.int8) if plan.device == "cpu" else (trt.float16,)):
        raise RuntimeError(f"there is no fast kernel for such caches of {kind} on {plan.device}")


def profiles(found: Interface, plan: Plan, grows: bool) -> list[list[dict]]:
    """Of steps by one token, of prompts, and of steps of a single row where there are several: three dicts of shapes each."""
    sources = (plan.sources[0], min(max(USUAL, plan.sources[0]), plan.sources[1]), plan.sources[1])
    if not found.caches:
        most = plan.chunk if plan.first else plan.capacity
        return [[found.shapes(1, n, 0, grows, s) for n, s in zip((1, 1 if plan.first else min(USUAL, most), most), sources)]]
    alone = grows and not found.grafted and not plan.blocks and not plan.capped  # each sequence has its own caches
    rows = 1 if alone or found.batch == 1 or found.crossed else plan.slots
    fixed = found.caches[0].capacity

    def pasts(most):
        return [fixed] * 3 if fixed > 0 else [0 if alone or not plan.in_place else 1, min(USUAL, most), most]

    steps = [found.shapes(b, 1, p, grows, s) for b, p, s in zip((1, rows, rows), pasts(plan.most), sources)]
    chunk = min(plan.chunk, fixed) if fixed > 0 else plan.chunk
    # What an encoder's decoder begins with is a few tokens.
    usual = 1 if found.crossed else chunk
    prompts = [
        found.shapes(1, n, p, grows, s) for n, p, s in zip((1, usual, chunk), pasts(plan.deep if grows else plan.most), sources)
    ]
    single = [found.shapes(1, 1, p, grows) for p in pasts(plan.most)]
    return [steps, prompts] + [single] * (rows > 1)


def _profile(builder, network, shapes: list[dict]):
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        if tensor.is_shape_tensor:
            profile.set_shape_input(tensor.name, *([n] * max(1, len(tensor.shape)) for n in (1, USUAL, 2**30)))
        elif -1 in tuple(tensor.shape):
            profile.set_shape(tensor.name, *(s[tensor.name] for s in shapes))
    return profile


def _layers(network):
    """{name of a tensor: the layer that makes it}."""
    layers = (network.get_layer(i) for i in range(network.num_layers))
    return {layer.get_output(i).name: layer for layer in layers for i in range(layer.num_outputs) if layer.get_output(i)}


def _grows(network, found: Interface) -> bool:
    """Whether caches come out longer than they went in: what makes one is a concatenation with the past, or a choice between two."""
    made, cache = _layers(network), found.caches[0]
    layer, seen = made.get(cache.present), 0
    while layer is not None and seen < 16:
        if layer.type in (trt.LayerType.CONCATENATION, trt.LayerType.CONDITIONAL_OUTPUT):
            return True
        through = (trt.LayerType.IDENTITY, trt.LayerType.SHUFFLE)
        layer, seen = made.get(layer.get_input(0).name) if layer.type in through and layer.get_input(0) else None, seen + 1
    return False


def _shape_part(network, tensor, axis: int):
    """[1], an extent at run time."""
    shape = network.add_shape(tensor).get_output(0)
    return network.add_slice(shape, (axis,), (1,), (1,)).get_output(0)


def _numbers(network, *values):
    return network.add_constant((len(values),), np.array(values, np.int32)).get_output(0)


def _joined(network, *parts):
    layer = network.add_concatenation(list(parts))
    layer.axis = 0
    return layer.get_output(0)


def _new_keys(network, layer, past, present, ids):
    """What the model puts behind the past, [batch, heads, new tokens, head]."""
    if (
        layer is not None
        and layer.type == trt.LayerType.CONCATENATION
        and layer.num_inputs == 2
        and layer.get_input(0).name == past.name
    ):
        return layer.get_input(1)
    start = _joined(network, _numbers(network, 0, 0), _shape_part(network, past, 2), _numbers(network, 0))
    size = _joined(
        network, *(_shape_part(network, past, a) for a in (0, 1)), _shape_part(network, ids, 1), _shape_part(network, past, 3)
    )
    cut = network.add_slice(present, (0,) * 4, (1,) * 4, (1,) * 4)
    cut.set_input(1, start)
    cut.set_input(2, size)
    return cut.get_output(0)


def _fixed(network, found: Interface, rows: int, config: dict) -> Interface:
    """Caches in place whose length the file leaves open get one."""
    opened = {c.past: 2 for c in found.caches if c.capacity < 0}
    if opened:
        opened |= {name: 3 for name, _ in found.masks}
    for tensor in (network.get_input(i) for i in range(network.num_inputs)):
        if tensor.name in opened:
            tensor.shape = tuple(rows if d == opened[tensor.name] else n for d, n in enumerate(tensor.shape))
    return interface_of(tensors_of_network(network), config)


def _graft(network, found: Interface) -> None:
    """Caches that are written in place, in the place of those that get longer."""
    inputs = {network.get_input(i).name: network.get_input(i) for i in range(network.num_inputs)}
    outputs = {network.get_output(i).name: network.get_output(i) for i in range(network.num_outputs)}
    made = _layers(network)
    index = network.add_input(INDEX, trt.int32, (found.batch,))
    for cache in found.caches:
        past, present = inputs[cache.past], outputs[cache.present]
        new = _new_keys(network, made.get(cache.present), past, present, inputs[found.ids])
        network.unmark_output(present)
        present.name = f"{cache.present} (grown)"
        plugin = plugin_of("TensorScatter")
        kept = network.add_plugin_v2([past, new, index], plugin).get_output(0)
        kept.name = cache.present
        network.mark_output(kept)


def _last_logits(network, found: Interface) -> None:
    """Logits of the last token alone, [batch, 1, vocabulary]: the product with the vocabulary is most of what a prompt would cost."""
    layer = _layers(network)[found.logits]
    logits = next(t for t in (network.get_output(i) for i in range(network.num_outputs)) if t.name == found.logits)
    product = layer.type == trt.LayerType.MATRIX_MULTIPLY and len(layer.get_input(0).shape) == 3
    hidden = layer.get_input(0) if product else logits
    step = _numbers(network, 1)
    last = network.add_elementwise(_shape_part(network, hidden, 1), step, trt.ElementWiseOperation.SUB).get_output(0)
    cut = network.add_slice(hidden, (0,) * 3, (1,) * 3, (1,) * 3)
    cut.set_input(1, _joined(network, _numbers(network, 0), last, _numbers(network, 0)))
    cut.set_input(2, _joined(network, _shape_part(network, hidden, 0), step, _shape_part(network, hidden, 2)))
    if product:
        layer.set_input(0, cut.get_output(0))
        return
    network.unmark_output(logits)
    logits.name = f"{found.logits} (all)"
    cut.get_output(0).name = found.logits
    network.mark_output(cut.get_output(0))


def plugin_of(name: str):
    """A plugin of this library's, without fields."""
    trt.init_libnvinfer_plugins(Logger(), "")
    creator = trt.get_plugin_registry().get_plugin_creator(name, "1", "")
    return creator.create_plugin(name, trt.PluginFieldCollection([]))


def of_plugin(name: str, inputs: dict, outputs: tuple[str, ...], logger: Logger, rows: int = 0) -> bytes:
    """The plan of a plugin alone. inputs: {name: (type, shape)}; rows: the most of a first dimension that is open."""
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    tensors = [network.add_input(n, dtype, shape) for n, (dtype, shape) in inputs.items()]
    layer = network.add_plugin_v2(tensors, plugin_of(name))
    for i, output in enumerate(outputs):
        layer.get_output(i).name = output
        network.mark_output(layer.get_output(i))
    settings = builder.create_builder_config()
    if rows:
        profile = builder.create_optimization_profile()
        for n, (_, shape) in inputs.items():
            if -1 in shape:
                profile.set_shape(n, *((b, *shape[1:]) for b in (1, rows, rows)))
        settings.add_optimization_profile(profile)
    return _serialized(builder, network, settings, logger)
