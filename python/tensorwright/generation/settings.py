# SPDX-License-Identifier: Apache-2.0
"""What a caller, and a model's generation_config.json, say of how tokens are chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

import numpy as np

# Numbers of all settings: type, smallest, largest, whether the smallest is allowed itself.
_RANGES = {
    "max_new_tokens": (int, 1, 2**31 - 1, True),
    "min_new_tokens": (int, 0, 2**31 - 1, True),
    "max_length": (int, 0, 2**62, True),
    "min_length": (int, 0, 2**31 - 1, True),
    "temperature": (float, 0, 1e6, True),
    "top_k": (int, 0, 2**31 - 1, True),
    "top_p": (float, 0, 1, False),
    "min_p": (float, 0, 1, True),
    "repetition_penalty": (float, 0, 1e6, False),
    "presence_penalty": (float, -1e6, 1e6, True),
    "frequency_penalty": (float, -1e6, 1e6, True),
    "no_repeat_ngram_size": (int, 0, 2**20, True),
    "encoder_repetition_penalty": (float, 0, 1e6, False),
    "encoder_no_repeat_ngram_size": (int, 0, 2**20, True),
    "num_beams": (int, 1, 256, True),
    "length_penalty": (float, -1e6, 1e6, True),
    "seed": (int, -(2**63), 2**64 - 1, True),
    "logprobs": (int, 0, 100, True),
    "pad_token_id": (int, -1, 2**31 - 1, True),
}
# What is added to a logit is not more, in both directions: enough to forbid a token, and to have no other.
_MOST_BIAS, _MOST_BIASED = 100.0, 1024
# Stop strings, and their characters: each is looked for behind every token.
_MOST_STOPS, _LONGEST_STOP = 64, 4096
_EARLY = {False: 0, True: 1, "never": 2}


@dataclass
class Settings:
    """How tokens are chosen (docs/plugins.md, Decoding, has the rules). max_length, min_length: of whole sequences, 0: max_new_tokens says; encoder_...: rules.py;
    forced_eos_token_id: what the last token has to be that there is room for; temperature: 0 is the best token; logprobs: None, or how many tokens
    beside the chosen one are told of; stop: texts that end a sequence; stop_token_ids: ids that do, beside the model's own; logit_bias: what is added to logits, by ids; decoder_tokens: what an
    encoder's decoder begins with behind its start token, None: what the model's configuration says."""

    max_new_tokens: int = 128
    min_new_tokens: int = 0
    max_length: int = 0
    min_length: int = 0
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    no_repeat_ngram_size: int = 0
    encoder_repetition_penalty: float = 1.0
    encoder_no_repeat_ngram_size: int = 0
    forced_eos_token_id: tuple[int, ...] = ()
    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    logprobs: int | None = None
    logit_bias: dict[int, float] = field(default_factory=dict)
    pad_token_id: int = 0
    decoder_tokens: tuple[int, ...] | None = None

    def __post_init__(self):
        for name, (kind, low, high, closed) in _RANGES.items():
            value = getattr(self, name)
            if name == "logprobs" and value is None:
                continue
            setattr(self, name, _number(name, value, kind, low, high, closed))
        if self.early_stopping not in (False, True, "never"):
            raise ValueError(f"early_stopping: {_shown(self.early_stopping)} is none (allowed: True, False, 'never')")
        self.stop = _texts(self.stop)
        self.stop_token_ids = ids_of("stop_token_ids", self.stop_token_ids)
        self.logit_bias = _biases(self.logit_bias)
        self.forced_eos_token_id = ids_of("forced_eos_token_id", self.forced_eos_token_id)
        if self.decoder_tokens is not None:
            self.decoder_tokens = ids_of("decoder_tokens", self.decoder_tokens)
        if self.num_beams > 1 and (self.stop or self.stop_token_ids or self.logprobs is not None or self.temperature):
            raise ValueError("num_beams: beams know neither stop, stop_token_ids, logprobs nor temperature")
        if self.num_beams > 1 and self.encoder_repetition_penalty != 1:
            raise ValueError("num_beams: beams know no encoder_repetition_penalty")
        if self.num_beams > 1 and self.logit_bias:
            raise ValueError("num_beams: beams know no logit_bias")

    def limit(self, prompt: int) -> int:
        """Tokens of a sequence at most, behind a prompt of so many."""
        return self.max_length or prompt + self.max_new_tokens

    def rows(self, prompt: int, room: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        """(floats, ints) of GenerateSample for a prompt of so many tokens; room: tokens of a sequence at most; number: of the sequence
        among those of its seed."""
        floats = [self.temperature, self.top_p, self.min_p, self.repetition_penalty, self.presence_penalty, self.frequency_penalty]
        least = min(max(prompt + self.min_new_tokens, self.min_length), room)
        seed = np.array([self.seed & 0xFFFFFFFF, self.seed >> 32 & 0xFFFFFFFF], np.uint32).view(np.int32)
        ints = [
            self.top_k,
            least,
            min(self.limit(prompt), room),
            self.no_repeat_ngram_size,
            *seed,
            number,
            -1,
            self.pad_token_id,
        ]
        return np.array([*floats, self.length_penalty], np.float32), np.array([*ints, _EARLY[self.early_stopping]], np.int32)


NAMES = tuple(f.name for f in fields(Settings))
# What a model's configuration does not say.
_OF_CALLS = ("stop", "stop_token_ids", "logprobs", "logit_bias", "seed", "decoder_tokens")
# What it may say that would change which tokens are chosen, and is not there, with the values that change nothing: always, among draws, of beams.
_NOT_THERE = {
    "always": {
        "penalty_alpha": (0,),
        "guidance_scale": (1,),
        "sequence_bias": ({}, []),
        "exponential_decay_length_penalty": (),
        "force_words_ids": ([],),
        "constraints": ([],),
        "watermarking_config": ({},),
        "dola_layers": (),
    },
    "draws": {"typical_p": (1,), "epsilon_cutoff": (0,), "eta_cutoff": (0,), "top_h": ()},
    "beams": {"num_beam_groups": (1,), "diversity_penalty": (0,), "renormalize_logits": (False,)},
}


def _shown(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _number(name, value, kind, low, high, closed):
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    right = isinstance(value, int) and not isinstance(value, bool) or kind is float and isinstance(value, float)
    if not right:
        raise ValueError(f"{name}: {_shown(value)} is {'no number' if kind is float else 'no whole number'}")
    if not (low <= value <= high) or (value == low and not closed) or math.isnan(value):
        where = f"{low:g} to {high:g}" if closed else f"above {low:g}, at most {high:g}"
        raise ValueError(f"{name}: {_shown(value)} is out of range (allowed: {where})")
    return kind(value)


def _texts(stop) -> tuple[str, ...]:
    stop = (stop,) if isinstance(stop, str) else tuple(stop or ())
    for text in stop:
        if not isinstance(text, str) or not text or len(text) > _LONGEST_STOP:
            raise ValueError(f"stop: {_shown(text)} is none (allowed: texts of 1 to {_LONGEST_STOP} characters)")
    if len(stop) > _MOST_STOPS:
        raise ValueError(f"stop: {len(stop)} texts (limit: {_MOST_STOPS})")
    return stop


def _biases(value) -> dict[int, float]:
    if not isinstance(value, dict) or len(value) > _MOST_BIASED:
        raise ValueError(f"logit_bias: {_shown(value)} is none (allowed: numbers by up to {_MOST_BIASED} ids of tokens)")
    ids = {t: int(t) if isinstance(t, str) and t.isascii() and t.isdecimal() else t for t in value}  # JSON has texts alone
    return {
        _number("logit_bias", ids[t], int, 0, 2**31 - 1, True): _number("logit_bias", b, float, -_MOST_BIAS, _MOST_BIAS, True)
        for t, b in value.items()
    }


def ids_of(name, value) -> tuple[int, ...]:
    """Ids of tokens: one, a list, or None."""
    if value is None:
        return ()
    values = (value,) if isinstance(value, int) else value
    if not isinstance(values, (list, tuple)) or len(values) > 1024:
        raise ValueError(f"{name}: {_shown(value)} is no id of a token and no list of ids")
    return tuple(_number(name, v, int, 0, 2**31 - 1, True) for v in values)


def _check_there(config: dict, settings: Settings, where: str) -> None:
    """Refuses what a model's configuration says that these settings would have to know."""
    kinds = ["always"] + ["draws"] * (settings.temperature > 0) + ["beams"] * (settings.num_beams > 1)
    for name, neutral in (item for kind in kinds for item in _NOT_THERE[kind].items()):
        value = config.get(name)
        if value is not None and value not in neutral:
            raise ValueError(
                f"{where}: {name} is {_shown(value)}, which would change the tokens that are chosen and is not supported; take it out of the file"
            )


def settings_of(given: dict, config: dict, where: str, chosen: bool = True) -> Settings:
    """The Settings of a caller's arguments over a model's generation_config.json, which `where` names. Values of None count as absent. chosen: tokens are
    going to be chosen so, which some settings of a model do not permit."""
    for name in given:
        if name not in NAMES and name != "do_sample":
            raise TypeError(f"{name!r} is no setting (known: {', '.join(NAMES)}, do_sample)")
    given = {n: v for n, v in given.items() if v is not None}
    kept = {n: v for n, v in config.items() if n in NAMES and v is not None and n not in _OF_CALLS}
    if isinstance(kept.get("pad_token_id"), list):
        del kept["pad_token_id"]
    if config.get("stop_strings") is not None and "stop" not in given:
        kept["stop"] = config["stop_strings"]
    # Whichever the caller says counts alone; of both max_new_tokens.
    if "max_new_tokens" in given or ("max_new_tokens" in kept and "max_length" not in given):
        given.pop("max_length", None), kept.pop("max_length", None)
    sample = given.pop("do_sample", None)
    if "temperature" not in given:
        if sample is None and {**kept, **given}.get("num_beams", 1) == 1:
            sample = bool(config.get("do_sample")) or any(n in given for n in ("top_k", "top_p", "min_p"))
        given["temperature"] = kept.get("temperature", 1.0) if sample else 0.0
    for name in kept:
        try:
            Settings(**{name: kept[name]})
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from None
    result = Settings(**{**kept, **given})
    if chosen:
        _check_there(config, result, where)
    return result
