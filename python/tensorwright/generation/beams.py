# SPDX-License-Identifier: Apache-2.0
"""Beam search: each beam has a slot, and an engine of BeamStep says which go on."""

from __future__ import annotations

import numpy as np
import tensorrt as trt

from .. import _memory
from .._model import Model
from . import build
from .rules import forced
from .runs import Runs
from .sampling import Banned
from .settings import Settings

# Columns of the numbers that BeamStep reads: the least length, and the size of n-grams that come once.
_LEAST, _NGRAM = 1, 3


def engine(vocabulary: int, beams: int, ends: int, banned: int, plan: build.Plan, cache) -> Model:
    """The engine of BeamStep for one sequence. banned: the length of a Banned."""
    shapes = {
        "logits": (trt.float32, (beams, vocabulary)),
        "sequences": (trt.int32, (1, beams, plan.capacity)),
        "lengths": (trt.int32, (1,)),
        "prompts": (trt.int32, (1,)),
        "sums": (trt.float32, (1, beams)),
        "done": (trt.int32, (1,)),
        "ended": (trt.int32, (1, beams, plan.capacity)),
        "ended_lengths": (trt.int32, (1, beams)),
        "scores": (trt.float32, (1, beams)),
        "floats": (trt.float32, (1, 7)),
        "ints": (trt.int32, (1, 10)),
        "ends": (trt.int32, (ends,)),
        **({"banned": (trt.int32, (1, 2, banned))} if banned else {}),
    }
    outputs = (
        "tokens",
        "parents",
        "new_sequences",
        "new_lengths",
        "new_sums",
        "new_done",
        "new_ended",
        "new_ended_lengths",
        "new_scores",
    )

    def make(logger):
        with _memory.chosen(plan.device):
            return build.of_plugin("BeamStep", shapes, outputs, logger)

    return build.kept(b"BeamStep", {"beams": (vocabulary, beams, ends, banned), "generation": vars(plan)}, plan, cache, False, make)


def search(
    runs: Runs, step: Model, prompt: list[int], settings: Settings, ends: tuple[int, ...], banned: Banned
) -> tuple[list[int], float]:
    """(tokens behind the prompt, score) of the best sequence. The caches are its own meanwhile."""
    beams, capacity, length = settings.num_beams, runs.plan.capacity, len(prompt)
    floats, ints = settings.rows(length, capacity, 0)
    sequences = np.zeros((1, beams, capacity), np.int32)
    sequences[:, :, :length] = prompt
    state = {
        "sequences": sequences,
        "lengths": np.array([length], np.int32),
        "sums": np.where(np.arange(beams) == 0, 0, -1e9).astype(np.float32)[None],
        "done": np.zeros(1, np.int32),
        "ended": np.zeros_like(sequences),
        "ended_lengths": np.zeros((1, beams), np.int32),
        "scores": np.zeros((1, beams), np.float32),
    }
    fixed = {
        "prompts": np.array([length], np.int32),
        "floats": floats[None],
        "ints": ints[None],
        "ends": np.array(ends or (-1,), np.int32),
    }
    for at in range(0, length, runs.chunk):
        runs.prefill(0, prompt[at : at + runs.chunk], at)
    logits = np.repeat(runs.first.read(), beams, 0)
    while True:
        words = {"banned": banned.of(length == len(prompt), 1)} if banned.length else {}
        last = forced(settings, len(prompt), length)
        if last is not None:  # whatever other rules say of it
            logits = np.where(np.arange(logits.shape[1]) == last, 0, -np.inf) + np.zeros((beams, 1))
            fixed["ints"][0, [_LEAST, _NGRAM]] = 0
            words = {name: np.full_like(array, -1) for name, array in words.items()}
        got = step.run({"logits": logits.astype(np.float32), **state, **fixed, **words})
        state = {name: got[f"new_{name}"] for name in state}
        if state["done"][0]:
            break
        # The prompt has been read for the first beam alone.
        runs.reorder([int(p) for p in got["parents"][0]] if length > len(prompt) else [0] * beams)
        runs.step(0, got["tokens"][0], [length] * beams)
        logits, length = runs.logits.read((beams, runs.found.vocabulary)), length + 1
    best = int(state["ended_lengths"][0, 0])
    return [int(t) for t in state["ended"][0, 0, len(prompt) : best]], float(state["scores"][0, 0])
