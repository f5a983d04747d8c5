# SPDX-License-Identifier: Apache-2.0
"""Tokens of an answer as OpenAI's log probabilities show them: texts, bytes, where they begin."""

from __future__ import annotations

import codecs
from dataclasses import dataclass


@dataclass
class Shown:
    """A token as a client sees it. offset: characters of the answer in front of it."""

    text: str
    bytes: list[int] | None
    logprob: float
    offset: int = 0


class TokenTexts:
    """The tokens of one sequence, in order. last: the token that it begins behind; without a tokenizer tokens are shown by their ids."""

    def __init__(self, tokenizer, last: int | None, begin: int):
        self._tokenizer, self._last, self._offset = tokenizer, last, begin
        self._characters = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int, logprob: float, top: list[tuple[int, float]]) -> tuple[Shown, list[Shown]]:
        """The next token, and those that were likely in its place."""
        shown, others = self._shown(token, logprob), [self._shown(t, p) for t, p in top]
        self._last = token
        self._offset += len(self._characters.decode(bytes(shown.bytes))) if shown.bytes is not None else 0
        return shown, others

    def _shown(self, token: int, logprob: float) -> Shown:
        if not self._tokenizer:
            return Shown(f"token_id:{token}", None, logprob, self._offset)
        text = self._tokenizer.token(token, self._last)
        return Shown(text, list(self._tokenizer.bytes_of(token, text)), logprob, self._offset)
