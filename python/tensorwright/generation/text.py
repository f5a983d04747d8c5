# SPDX-License-Identifier: Apache-2.0
"""Between texts and tokens: tokenizer.json by the package tokenizers, texts that grow by a token, stop strings."""

from __future__ import annotations

# Bytes of a tokenizer.json; the largest known ones have some 30 MiB.
_LARGEST = 256 << 20
# Tokens that may be held back because they end within a character.
_MOST_PENDING = 16
_BROKEN = "\ufffd"


def _bytes() -> dict[str, int]:
    """The characters that stand for bytes in tokens of GPT-2 and what followed it: those that can be seen for themselves, others from 256 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (b for b in range(256) if b not in seen)
    return {chr(b): b for b in seen} | {chr(256 + i): b for i, b in enumerate(others)}


_BYTES = _bytes()


class Tokenizer:
    """A tokenizer.json. Whatever is wrong with the file is a ValueError."""

    def __init__(self, path: str, vocabulary: int):
        try:
            import tokenizers
        except ImportError as error:
            raise ImportError(f"{path} needs the package tokenizers (pip install 'tensorwright[generate]'): {error}") from error
        self.path = path
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ValueError(f"{path} has more than {_LARGEST} bytes")
        self._tokenizer = self._try("is no tokenizer", tokenizers.Tokenizer.from_buffer, data)
        # A model's own limits and padding are not for prompts that are read as they are.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # What has been added to it may be beyond what the model knows; a prompt with such a token is refused.
        ids = self._try("is no tokenizer", self._tokenizer.get_vocab, with_added_tokens=False).values()
        if max(ids, default=0) >= vocabulary:
            raise ValueError(
                f"{path} has tokens up to {max(ids)}, the model has {vocabulary}: it is the tokenizer of another model"
            )

    def _try(self, what, function, *arguments, **named):
        try:
            return function(*arguments, **named)
        except BaseException as error:  # the package's panics are no Exceptions
            if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
                raise
            raise ValueError(f"{self.path} {what}: {str(error)[:300]}") from None

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The ids of a text. special: with those that the tokenizer puts around it."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("the prompt is no text: it has half of a pair of surrogates") from None
        return self._try("cannot read a prompt", self._tokenizer.encode, text, add_special_tokens=special).ids

    def decode(self, tokens: list[int], special: bool = False) -> str:
        """special: special tokens are shown, too."""
        return self._try("cannot write tokens", self._tokenizer.decode, tokens, skip_special_tokens=not special)

    def id_of(self, token: str) -> int | None:
        """The id of a token by its text."""
        return self._try("cannot find a token", self._tokenizer.token_to_id, token)

    def token(self, identity: int, last: int | None = None) -> str:
        """How a token is written, by itself or behind another one: some lose the space in front of them where a text begins."""
        if last is None:
            return self.decode([identity], True)
        return self.decode([last, identity], True)[len(self.decode([last], True)) :]

    def bytes_of(self, identity: int, text: str) -> bytes:
        """The bytes of a token, which may be parts of a character; text: how it is written."""
        if _BROKEN not in text:
            return text.encode(errors="replace")
        piece = self._try("cannot find a token", self._tokenizer.id_to_token, identity) or ""
        if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            return bytes([int(piece[3:5], 16)])
        return bytes(_BYTES[c] for c in piece) if piece and all(c in _BYTES for c in piece) else text.encode(errors="replace")


class Growing:
    """The text of tokens that come one by one. Bytes of a character that has not ended are held back."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer, self._tokens, self._begin, self._shown = tokenizer, [], 0, 0

    def add(self, token: int) -> str:
        """The text that is new."""
        self._tokens.append(token)
        piece = self._new()
        if piece.endswith(_BROKEN) and len(self._tokens) - self._shown < _MOST_PENDING:
            return ""
        # What was shown last stays in front, as tokens are written otherwise at the beginning of a text.
        self._begin, self._shown = self._shown, len(self._tokens)
        return piece

    def end(self) -> str:
        """What was held back."""
        piece = self._new()
        self._begin, self._shown = self._shown, len(self._tokens)
        return piece

    def _new(self) -> str:
        if self._shown == len(self._tokens):
            return ""
        before = self._tokenizer.decode(self._tokens[self._begin : self._shown]) if self._shown > self._begin else ""
        return self._tokenizer.decode(self._tokens[self._begin :])[len(before) :]


class Stops:
    """Looks for stop strings in a text that comes in pieces, and holds back what may be the beginning of one."""

    def __init__(self, stops: tuple[str, ...]):
        self._stops, self._held = stops, ""
        self.found = False

    def add(self, piece: str) -> str:
        """The text that may be shown. With `found` it is all that there will be."""
        if not self._stops:
            return piece
        text = self._held + piece
        at = min((i for i in (text.find(s) for s in self._stops) if i >= 0), default=-1)
        if at >= 0:
            self.found, self._held = True, ""
            return text[:at]
        keep = max((_overlap(text, s) for s in self._stops), default=0)
        self._held = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep]

    def end(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Characters at the text's end that a stop string begins with."""
    most = min(len(text), len(stop) - 1)
    return next((n for n in range(most, 0, -1) if stop.startswith(text[len(text) - n :])), 0)
