# SPDX-License-Identifier: Apache-2.0
"""What the inputs and outputs of a decoder, and of an encoder, mean, by the names that exporters give them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import tensorrt as trt

# The input that a cache of fixed capacity is written by, where this package has put it behind a model that concatenates.
INDEX = "tensorwright.index"
_ROLES = {
    "ids": ("input_ids", "decoder_input_ids", "tokens", "input"),
    "mask": ("attention_mask", "decoder_attention_mask"),
    "places": ("position_ids",),
    "order": ("cache_position",),
    "pages": ("kv_pages",),
    "index": (INDEX, "write_indices", "write_index", "past_lengths"),
    "lengths": ("nonpad_kv_seqlen", "kv_lengths", "sequence_lengths", "lengths"),
    "last": ("seqlens_k",),
    "total": ("total_sequence_length",),
    "branch": ("use_cache_branch",),
    "states": ("encoder_hidden_states", "encoder_outputs"),
    "states_mask": ("encoder_attention_mask",),
}
# Of config.json: what files may leave open.
_HEADS = ("num_attention_heads", "n_head", "decoder_attention_heads", "num_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model")
_HEAD = ("head_dim", "d_kv")
_WINDOW, _HAS_WINDOW = "sliding_window", "use_sliding_window"
SIZES = (*_HEADS, "num_key_value_heads", *_WIDTH, *_HEAD, _WINDOW, _HAS_WINDOW)
# past_key_values.0.key; of Transformers' own exporter input.cache.layers.0.keys, or another name of the argument.
_PAST = re.compile(r"past|^(input\.)?\w*cache\w*\.(layers\.)?\d+\.(keys?|values?)$")
# Of layers with a window that exporter has an input more, which says how large it is.
_SAID_WINDOW = re.compile(r"\._?sliding_window(_tensor)?$")
# Of static caches it is told how many tokens they hold, each one by itself.
_COUNT = re.compile(r"\.cumulative_length$")
# Beside static caches masks are of each new token; there may be one for each kind of layer.
_MASK_OF_KIND = re.compile(r"^attention_mask\.(full|sliding)_attention$")
_OTHER_SIDE = re.compile(r"encoder|cross")


@dataclass(frozen=True)
class Tensor:
    """An input or output: its shape has -1 where it is open."""

    name: str
    is_input: bool
    shape: tuple
    dtype: object


@dataclass(frozen=True)
class Cache:
    """Keys or values of one layer: [batch, heads, tokens, head]. present None: they come out no more (of an encoder)."""

    past: str
    present: str | None
    heads: int
    head: int
    capacity: int  # -1: open


@dataclass
class Interface:
    """Names of inputs by what they are, None where the model has none."""

    ids: str = ""
    mask: str | None = None
    places: str | None = None
    index: str | None = None
    pages: str | None = None  # which blocks of the caches each row has
    lengths: str | None = None
    last: str | None = None
    total: str | None = None
    branch: str | None = None
    order: str | None = None  # places of new tokens, [tokens]: of all rows
    states: str | None = None  # of an encoder, [batch, source, width]
    states_mask: str | None = None
    width: int = 0
    windows: tuple[str, ...] = ()  # inputs of one number, the tokens of a window
    window: int = 0
    # Masks of each new token, [batch, 1, tokens, columns], which say themselves that none sees what comes behind it: (name, tokens of its window or 0).
    masks: tuple[tuple[str, int], ...] = ()
    counts: tuple[str, ...] = ()  # inputs of one number, the tokens before a run; caches in place have kv_lengths instead
    logits: str = ""
    caches: list[Cache] = field(default_factory=list)
    crosses: list[Cache] = field(default_factory=list)  # of an encoder's states, which stay as they are
    vocabulary: int = 0
    batch: int = -1
    tensors: dict[str, Tensor] = field(default_factory=dict)

    @property
    def grafted(self) -> bool:
        return self.index == INDEX

    @property
    def crossed(self) -> bool:
        """Whether it is the decoder of an encoder's states."""
        return bool(self.states or self.states_mask or self.crosses)

    def shapes(self, rows: int, new: int, past: int, grows: bool, source: int = 0) -> dict[str, tuple]:
        """Of all inputs, for a run of so many new tokens in each row. grows: the outputs' caches have the new tokens behind the old; source:
        what an encoder has read."""
        result = {self.ids: (rows, new)}
        columns = past + new if grows or not self.caches else past
        if self.mask:
            result[self.mask] = (rows, columns)
        result |= {name: (rows, 1, new, columns) for name, _ in self.masks}
        if self.places:
            result[self.places] = (3, rows, new)[-len(self.tensors[self.places].shape) :]
        for name in (self.index, self.lengths, self.last):
            if name:
                result[name] = (rows, 1)[: len(self.tensors[name].shape)]
        for name in (self.total, self.branch, *self.windows, *self.counts):
            if name:
                result[name] = (1,)[: len(self.tensors[name].shape)]
        if self.order:
            result[self.order] = (new,)
        if self.states:
            result[self.states] = (rows, source, self.width)
        if self.states_mask:
            result[self.states_mask] = (rows, source)
        for caches, length in ((self.caches, past), (self.crosses, source)):
            result |= {c.past: (rows, c.heads, length, c.head) for c in caches}
        return result


def _masks(found: Interface, left: dict[str, Tensor], config: dict) -> tuple[tuple[str, int], ...]:
    """Masks of each new token; one that has no kind in its name is of all layers, which have a window if there is one."""
    window = 0 if config.get(_HAS_WINDOW) is False else _number(config, _WINDOW)
    if found.mask and len(found.tensors[found.mask].shape) == 4:
        name, found.mask = found.mask, None
        return ((name, window),)
    kinds = [(n, m[1] == "sliding") for n in left if (m := _MASK_OF_KIND.match(n)) and len(left[n].shape) == 4]
    if any(slides for _, slides in kinds) and not _number(config, _WINDOW):
        raise ValueError(f"input {kinds[0][0]!r} is a mask of windows; a config.json beside the model has to say {_WINDOW}")
    return tuple((n, _number(config, _WINDOW) if slides else 0) for n, slides in kinds)


def tensors_of_network(network) -> list[Tensor]:
    def made(tensor, is_input):
        return Tensor(tensor.name, is_input, tuple(tensor.shape), tensor.dtype)

    inputs = [made(network.get_input(i), True) for i in range(network.num_inputs)]
    return inputs + [made(network.get_output(i), False) for i in range(network.num_outputs)]


def tensors_of_engine(engine) -> list[Tensor]:
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    inputs = {n for n in names if engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT}
    return [Tensor(n, n in inputs, tuple(engine.get_tensor_shape(n)), engine.get_tensor_dtype(n)) for n in names]


def interface_of(tensors: list[Tensor], config: dict | None = None) -> Interface:
    """The Interface of a decoder's tensors. config: what config.json says, for heads that the file leaves open."""
    found = Interface(tensors={t.name: t for t in tensors})
    inputs = {t.name: t for t in tensors if t.is_input}
    outputs = {t.name: t for t in tensors if not t.is_input}
    left = dict(inputs)
    for role, names in _ROLES.items():
        for name in names:
            if name in left:
                setattr(found, role, name)
                del left[name]
                break
    if not found.ids and "inputs_embeds" in inputs:
        raise ValueError("the model reads inputs_embeds; embed_tokens.onnx, which makes them of tokens, is expected beside it")
    if not found.ids:
        raise ValueError(f"no input is called input_ids (inputs: {', '.join(inputs)}); the model is no decoder of tokens")
    if found.ids == "input_ids" and "decoder_input_ids" in inputs:
        raise ValueError(
            "the file is an encoder and a decoder in one, which has no caches and reads all again for each token; export them apart, as optimum does: encoder_model.onnx"
            " and decoder_model_merged.onnx"
        )
    if len(inputs[found.ids].shape) != 2:
        raise ValueError(f"input {found.ids!r} has the shape {list(inputs[found.ids].shape)}, [batch, tokens] is expected")
    found.masks = _masks(found, left, config or {})
    for name, ranks in (
        (found.mask, (2,)),
        (found.places, (2, 3)),
        (found.index, (1, 2)),
        (found.pages, (2,)),
        (found.lengths, (1, 2)),
        (found.last, (1, 2)),
        (found.order, (1,)),
        (found.states, (3,)),
        (found.states_mask, (2,)),
    ):
        if name and len(inputs[name].shape) not in ranks:
            raise ValueError(
                f"input {name!r} has the shape {list(inputs[name].shape)}, of {ranks[-1]} dimensions it would be known"
            )
    found.counts = tuple(n for n in left if _COUNT.search(n) and len(left[n].shape) < 2)
    if (found.pages or found.counts or not found.index) and found.lengths == "kv_lengths":  # tokens before a run, and so where new ones go
        found.index, found.lengths = found.lengths, None
    found.batch = inputs[found.ids].shape[0]
    found.windows = tuple(n for n in left if _SAID_WINDOW.search(n) and len(left[n].shape) < 2)
    found.window = _number(config or {}, _WINDOW)
    if found.windows and not found.window:
        raise ValueError(f"input {found.windows[0]!r} is the size of a window; a config.json beside the model has to say {_WINDOW}")
    for name in (*found.windows, *found.counts, *(n for n, _ in found.masks)):
        left.pop(name, None)
    for name in [n for n in left if _PAST.search(n)]:
        caches = found.crosses if _OTHER_SIDE.search(name) else found.caches
        caches.append(_cache(left.pop(name), outputs, config or {}, caches is found.crosses))
    if found.states:
        found.width = max(inputs[found.states].shape[2], 0) or _number(config or {}, *_WIDTH)
        if not found.width:
            raise ValueError(
                f"input {found.states!r} has the shape {list(inputs[found.states].shape)}; a config.json beside the model has to say the last one"
            )
    if left:
        raise ValueError(
            f"what is input {next(iter(left))!r} of the model? (known: {', '.join(n for r in _ROLES.values() for n in r)}, past_key_values.N.key)"
        )
    _set_logits(found, outputs)
    return found


def presents_of(past: str) -> list[str]:
    """What the output of a cache may be called."""
    names = (("past_key_values", "present"), ("past", "present"), ("past_key_values", "present_key_values"))
    made = [past.replace(old, new) for old, new in names]
    if past.startswith("input."):
        made = ["output." + past.removeprefix("input."), *made]
    return list(dict.fromkeys(made))


def _cache(past: Tensor, outputs: dict[str, Tensor], config: dict, alone: bool) -> Cache:
    """alone: it may have no output."""
    candidates = presents_of(past.name)
    present = next((n for n in candidates if n in outputs), None)
    if present is None and not alone:
        raise ValueError(f"input {past.name!r} is a cache without an output (looked for: {', '.join(candidates)})")
    if len(past.shape) != 4:
        raise ValueError(f"input {past.name!r} has the shape {list(past.shape)}, a cache is [batch, heads, tokens, head]")
    _, heads, capacity, head = past.shape
    attention_heads = _number(config, *_HEADS)
    if heads < 0:
        heads = _number(config, "num_key_value_heads") or attention_heads
    if head < 0:
        width = _number(config, *_WIDTH)
        head = _number(config, *_HEAD) or (width // attention_heads if attention_heads else 0)
    if heads <= 0 or head <= 0:
        raise ValueError(
            f"input {past.name!r} has the shape {list(past.shape)}; a config.json beside the model has to say how many heads there are"
        )
    return Cache(past.name, present, heads, head, capacity)


def _number(config: dict, *names: str) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31:
            return value
    return 0


def _set_logits(found: Interface, outputs: dict[str, Tensor]) -> None:
    presents = {c.present for c in (*found.caches, *found.crosses)}
    rest = [n for n in outputs if n not in presents]
    name = "logits" if "logits" in rest else next((n for n in rest if len(outputs[n].shape) == 3), None)
    if name is None:
        raise ValueError(f"no output has logits, [batch, tokens, vocabulary] (outputs: {', '.join(outputs)})")
    shape = outputs[name].shape
    if len(shape) != 3 or shape[2] <= 0:
        raise ValueError(
            f"output {name!r} has the shape {list(shape)}, [batch, tokens, vocabulary] with a known vocabulary is expected"
        )
    found.logits, found.vocabulary = name, shape[2]


@dataclass(frozen=True)
class Source:
    """What an encoder reads and gives: the names of its inputs and of its states. features: numbers instead of tokens."""

    name: str
    shape: tuple
    features: bool
    mask: str | None
    states: str


def source_of(tensors: list[Tensor]) -> Source:
    """The Source of an encoder's tensors."""
    inputs = [t for t in tensors if t.is_input]
    mask = next((t for t in inputs if t.name == "attention_mask"), None)
    rest = [t for t in inputs if t is not mask]
    if len(rest) != 1:
        raise ValueError(f"an encoder has one input beside attention_mask (there are: {', '.join(t.name for t in inputs)})")
    source, features = rest[0], rest[0].dtype in (trt.float32, trt.float16)
    if len(source.shape) < 2 or (not features and len(source.shape) != 2):
        raise ValueError(f"input {source.name!r} of the encoder has the shape {list(source.shape)}, [batch, tokens] is expected")
    if mask and (features or len(mask.shape) != 2):
        raise ValueError(f"input {mask.name!r} of the encoder is known of tokens, [batch, tokens]")
    outputs = [t for t in tensors if not t.is_input]
    known = [t for t in outputs if t.name == "last_hidden_state"] or [t for t in outputs if len(t.shape) == 3]
    if not known or len(known[0].shape) != 3:
        raise ValueError(f"no output of the encoder has states, [batch, source, width] (outputs: {', '.join(t.name for t in outputs)})")
    return Source(source.name, source.shape, features, mask and mask.name, known[0].name)
