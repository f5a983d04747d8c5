# SPDX-License-Identifier: Apache-2.0
"""The files of a model: its ONNX file, and what lies beside it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

# Where exporters put a decoder, best first.
_NAMES = ("model.onnx", "decoder_model_merged.onnx", "decoder_with_past_model.onnx", "decoder_model.onnx", "decode.onnx")
_EMBEDDINGS = "embed_tokens"
_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "context_length", "seq_length")
_LARGEST = 64 << 20
_JSON = ("config.json", "generation_config.json", "genai_config.json", "tokenizer_config.json")


@dataclass
class Files:
    """onnx, folder, encoder: paths; what JSON files say, {} where there are none."""

    onnx: str
    folder: str
    encoder: str | None = None
    first: str | None = None  # the decoder for tokens without a past, where `onnx` needs one
    config: dict = field(default_factory=dict)
    generation: dict = field(default_factory=dict)
    tokenizer_config: dict = field(default_factory=dict)

    @property
    def tokenizer(self) -> str | None:
        path = os.path.join(self.folder, "tokenizer.json")
        return path if os.path.isfile(path) else None

    @property
    def name(self) -> str:
        """What the model is called: its folder, or its file where that says more."""
        stem = os.path.splitext(os.path.basename(self.onnx))[0]
        return os.path.basename(self.folder) if os.path.basename(self.onnx) in _NAMES or stem == "model" else stem

    def most_positions(self) -> int:
        """Tokens that the model, or its decoder, was made for; 0: nothing says so."""
        return self.number("max_target_positions", "max_decoder_position_embeddings", *_POSITIONS)

    def most_sources(self) -> int:
        """Tokens that the encoder was made for; 0: nothing says so."""
        return self.number("max_source_positions", "max_encoder_position_embeddings", *_POSITIONS)

    def number(self, *names: str) -> int:
        """The first of these in config.json that is a number above 0; 0: none."""
        values = (self.config.get(name) for name in names)
        return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), 0)

    def said(self, name: str):
        """A value of generation_config.json, else of config.json."""
        value = self.generation.get(name)
        return self.config.get(name) if value is None else value

    def ends(self) -> tuple:
        """The value of eos_token_id, by the file that knows best."""
        value = self.said("eos_token_id")
        return () if value is None else value


def files_of(model: str | os.PathLike) -> Files:
    """The files of a folder, or of an ONNX file and its folder."""
    path = os.path.abspath(os.fspath(model))
    if os.path.isfile(path):
        folder = os.path.dirname(path)
        above = os.path.dirname(folder)
        in_part = os.path.basename(folder) == "onnx" and not _has_json(folder) and _has_json(above)
        found = Files(path, above if in_part else folder)
    elif os.path.isdir(path):
        inner = os.path.join(path, "model")  # Olive's
        found = Files("", inner if not _has_json(path) and _has_json(inner) else path)
    else:
        raise FileNotFoundError(f"there is no model {path}")
    found.config = _json(found.folder, "config.json")
    found.generation = _json(found.folder, "generation_config.json")
    found.tokenizer_config = _json(found.folder, "tokenizer_config.json")
    inner = found.config.get("text_config")  # of models that read more than text
    found.config = {**inner, **found.config} if isinstance(inner, dict) else found.config
    _add_genai(found)
    if not found.onnx:
        found.onnx = _onnx_in(found.folder)
    _add_encoder(found)
    return found


def _has_json(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in _JSON)


def _add_encoder(found: Files) -> None:
    """What lies beside a decoder by the names of optimum, which has a suffix for quantized ones: encoder_model_int8.onnx, ..."""
    folder, name = os.path.split(found.onnx)
    kind = next((n.removesuffix(".onnx") for n in _NAMES[1:4] if name.startswith(n.removesuffix(".onnx"))), None)
    if kind is None:
        return

    def beside(other):
        names = (other + name.removeprefix(kind), other + ".onnx")
        return next((p for p in (os.path.join(folder, n) for n in names) if os.path.isfile(p)), None)

    found.encoder = beside("encoder_model")
    if kind == "decoder_with_past_model":
        found.first = beside("decoder_model")


def embeddings_beside(path: str) -> str | None:
    """The file that makes of tokens what a decoder reads that has no tokens, as models of pictures and texts are exported: embed_tokens.onnx, with a suffix
    like the decoder's or without one."""
    folder, name = os.path.split(path)
    kind = next((n.removesuffix(".onnx") for n in _NAMES if name.startswith(n.removesuffix(".onnx"))), "")
    names = (f"{_EMBEDDINGS}{name.removeprefix(kind)}", f"{_EMBEDDINGS}.onnx")
    return next((p for p in (os.path.join(folder, n) for n in names) if os.path.isfile(p)), None)


def _onnx_in(folder: str) -> str:
    places = [p for p in (folder, os.path.join(folder, "onnx")) if os.path.isdir(p)]
    for place in places:
        for name in _NAMES:
            if os.path.isfile(os.path.join(place, name)):
                return os.path.join(place, name)
    found = [os.path.join(p, n) for p in places for n in sorted(os.listdir(p)) if n.endswith(".onnx")]
    names = [os.path.relpath(p, folder) for p in found]
    if len(names) != 1:
        raise FileNotFoundError(
            f"{folder} has {'several ONNX files: ' + ', '.join(names) if names else 'no ONNX file'}; one called {_NAMES[0]} is expected, or name the file"
        )
    return found[0]


def _json(folder: str, name: str) -> dict:
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return {}
    with open(path, "rb") as file:
        data = file.read(_LARGEST + 1)
    try:
        value = json.loads(data) if len(data) <= _LARGEST else None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} is no object of JSON, or has more than {_LARGEST} bytes")
    return value


def _add_genai(found: Files) -> None:
    """What genai_config.json says: the file of the decoder, its sizes, ends and search."""
    genai = _json(found.folder, "genai_config.json")
    model = genai.get("model") if isinstance(genai.get("model"), dict) else {}
    decoder = model.get("decoder") if isinstance(model.get("decoder"), dict) else {}
    if isinstance(decoder.get("pipeline"), list):
        raise ValueError(f"{found.folder}: genai_config.json says that the decoder is a pipeline of several files; one, model.decoder.filename, is expected")
    search = genai.get("search") if isinstance(genai.get("search"), dict) else {}
    name = decoder.get("filename")
    if (
        not found.onnx
        and isinstance(name, str)
        and os.path.basename(name) == name
        and os.path.isfile(os.path.join(found.folder, name))
    ):
        found.onnx = os.path.join(found.folder, name)
    known = {
        "context_length": model.get("context_length"),
        "head_dim": decoder.get("head_size"),
        "hidden_size": decoder.get("hidden_size"),
        "num_attention_heads": decoder.get("num_attention_heads"),
        "num_key_value_heads": decoder.get("num_key_value_heads"),
    }
    found.config = {n: v for n, v in known.items() if v is not None} | found.config
    rest = {n: model.get(n) for n in ("eos_token_id", "pad_token_id", "bos_token_id")} | search
    found.generation = {n: v for n, v in rest.items() if v is not None} | found.generation
