# SPDX-License-Identifier: Apache-2.0
"""Rules that GenerateSample does not have: of what has been read (the prompt, or what an encoder has), of tokens
that a caller wants more or less, and of a sequence's last token."""

from __future__ import annotations

import numpy as np

from .settings import Settings


class Rules:
    """Those of one sequence. source: the tokens that have been read; empty where they are none (sound, pictures)."""

    def __init__(self, settings: Settings, source):
        self._penalty, self._size = settings.encoder_repetition_penalty, settings.encoder_no_repeat_ngram_size
        self._ids = np.unique(np.asarray(source, np.int64))
        self._biased = np.array(list(settings.logit_bias), np.int64)
        self._biases = np.array(list(settings.logit_bias.values()), np.float64)
        self._behind: dict[tuple, set[int]] = {}  # what comes behind so many tokens less one
        for *before, token in ngrams(source, self._size):
            self._behind.setdefault(tuple(before), set()).add(token)

    def changed(self, logits, tokens: list[int]):
        """Logits of a row, [vocabulary], behind these tokens."""
        result = np.array(logits)
        if self._penalty != 1 and len(self._ids):
            read = result[self._ids]
            result[self._ids] = np.where(read < 0, read / self._penalty, read * self._penalty)
        banned = self._behind.get(tuple(tokens[len(tokens) + 1 - self._size :]), ()) if self._size else ()
        result[self._biased] += self._biases
        result[list(banned)] = -np.inf
        return result


def ngrams(tokens: list[int], size: int) -> list[tuple[int, ...]]:
    """All so many tokens in a row, each once; of a size of 0 none."""
    return list(dict.fromkeys(tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1))) if size else []


def rules_of(settings: Settings, source) -> Rules | None:
    """None: there are none."""
    if settings.encoder_repetition_penalty == 1 and not settings.encoder_no_repeat_ngram_size and not settings.logit_bias:
        return None
    return Rules(settings, source if isinstance(source, list) else [])


def forced(settings: Settings, prompt: int, length: int) -> int | None:
    """What a sequence of so many tokens has to go on with; None: anything."""
    ids = settings.forced_eos_token_id
    return min(ids) if ids and length == settings.limit(prompt) - 1 else None
