# SPDX-License-Identifier: Apache-2.0
"""A decoder model, ready to generate."""

from __future__ import annotations

import collections
import dataclasses
import numbers
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from .. import _memory
from .._compile import PRECISIONS
from . import beams, build, sampling
from .chat import messages_of, special_of, template_of
from .files import files_of
from .loading import USUAL_CAPACITY, Loading
from .rules import ngrams
from .scheduler import Piece, Scheduler, Sequence
from .settings import Settings, ids_of, settings_of
from .text import Tokenizer


@dataclass
class Generation:
    """What came of a prompt: `tokens` behind it, the end token included; `text` None where there is no tokenizer; `reason`: "stop" or
    "length"; `logprobs` of the tokens and `top`, [(token, log probability)] for each, where they were asked for; `score` of beams.
    """

    tokens: list[int] = field(default_factory=list)
    text: str | None = None
    reason: str = "stop"
    prompt_tokens: int = 0
    logprobs: list[float] = field(default_factory=list)
    top: list[list[tuple[int, float]]] = field(default_factory=list)
    score: float | None = None

    def __str__(self):
        return str(self.tokens) if self.text is None else self.text


class Stream(Iterator):
    """The pieces of a sequence as they come; close(), or the end of a `with`, cancels what is left."""

    def __init__(self, generator: Generator, prompt: list[int], settings: Settings, number: int = 0):
        self._generator, self._pieces, self._over = generator, collections.deque(), False
        self.prompt_tokens = len(prompt)
        self._sequence = Sequence(prompt, settings, self._pieces.append, number=number)
        generator.submit(self._sequence)

    def __next__(self) -> Piece:
        if self._over:
            raise StopIteration
        while not self._pieces:
            self._generator.advance(self._pieces)
        piece = self._pieces.popleft()
        self._over = piece.reason is not None
        if piece.reason == "error":
            raise RuntimeError(piece.error)
        return piece

    def close(self) -> None:
        self._sequence.cancel()
        self._over = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        sequence = getattr(self, "_sequence", None)
        if sequence is not None:
            sequence.cancel()


class Generator:
    """A decoder model that is ready to generate. Threads may share it: what they ask for at a time takes its steps together.

    model: a folder with model.onnx, or an ONNX file; config.json, generation_config.json, tokenizer.json and a chat template are taken from
        beside it where they are there.
    tokenizer: the name of another tokenizer.json; False: none, prompts are lists of ids.
    slots: sequences at a time; more wait. capacity: tokens of a sequence at most, its prompt included; None: the model's, at most 2048.
    source_capacity: tokens that an encoder reads at most; None: the model's, at most 2048.
    chunk: tokens of a prompt that are read between two steps of the others. reuse: a prompt that begins as one before it is read from where
        they differ.
    pages: blocks of 16 tokens that all sequences have together, where the model's caches can be in pages; None: as many as its slots filled
        to the last would have; 0: no pages. A sequence waits until there are blocks for all that it may become.
    precision, device, cache, progress: as of compile()."""

    def __init__(
        self,
        model,
        *,
        tokenizer=None,
        slots=8,
        capacity=None,
        source_capacity=None,
        chunk=128,
        reuse=True,
        pages=None,
        precision="fp32",
        device=None,
        cache=True,
        progress=None,
    ):
        if precision not in PRECISIONS:
            raise ValueError(f"precision: {precision!r} is none (allowed: {', '.join(PRECISIONS)})")
        for name, value, low, high in (
            ("slots", slots, 1, 1024),
            ("chunk", chunk, 1, 2**20),
            ("capacity", 2 if capacity is None else capacity, 2, 2**24),
            ("pages", 0 if pages is None else pages, 0, 2**24),
            ("source_capacity", 1 if source_capacity is None else source_capacity, 1, 2**24),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"{name}: {value!r} is out of range (allowed: {low} to {high})")
        self.files = files_of(model)
        self.name = self.files.name
        self.ends = ids_of("eos_token_id", self.files.ends())
        most = self.files.most_positions()
        if capacity is None:
            capacity = max(2, min(most or USUAL_CAPACITY, USUAL_CAPACITY))
        elif not most:
            most = capacity
        elif capacity > most:
            raise ValueError(f"capacity: {capacity} tokens, the model was made for {most}")
        settings_of({}, self.files.generation, os.path.join(self.files.folder, "generation_config.json"), chosen=False)
        if slots * capacity >= 2**31:
            raise ValueError(f"{slots} slots of {capacity} tokens: their product has to be less than 2147483648")
        # The last eighth of what the model was made for is read token by token.
        chunk = max(1, min(chunk, capacity, (most or 2**30) // 8))
        plan = build.Plan(True, slots, chunk, capacity, max(most, 2) if most else 0, precision, _memory.resolve(device))
        loaded = Loading(self.files, cache, progress)
        loaded.load(plan, pages, source_capacity)
        self._plan, self.model, self.interface, self.runs = loaded.plan, loaded.model, loaded.interface, loaded.runs
        self.encoder, self._starts = loaded.encoder, loaded.starts
        self.capacity = self._plan.capacity
        vocabulary = self.interface.vocabulary
        path = self.files.tokenizer if tokenizer is None else tokenizer or None
        self.tokenizer = Tokenizer(os.fspath(path), vocabulary) if path else None
        if not self.ends and self.tokenizer:
            end = special_of(self.files.tokenizer_config).get("eos_token")
            found = self.tokenizer.id_of(end) if end else None
            self.ends = () if found is None else (found,)
        self.template = template_of(self.files.folder, self.files.tokenizer_config) if self.tokenizer else None
        kind = self.interface.tensors[self.interface.logits].dtype
        self._banned = self._words_that_never_come(vocabulary)
        chooser = sampling.engine(vocabulary, kind, max(1, len(self.ends)), self._banned.length, self._plan, cache)
        sampler = sampling.Sampler(chooser, self.ends, self._banned)
        self.scheduler = Scheduler(self.runs, sampler, self.tokenizer, self.ends, reuse)
        self._cache, self._turn, self._beams = cache, threading.Lock(), {}

    def __repr__(self):
        return f"<tensorwright.Generator {self.name} on {self.model.device}: {self._plan.slots} sequences of {self.capacity} tokens, caches {self.runs.kind}>"

    def _words_that_never_come(self, vocabulary: int) -> sampling.Banned:
        """Of the model's configuration."""
        words = self.files.said("bad_words_ids") or []
        if not isinstance(words, list) or len(words) > 1024:
            raise ValueError("bad_words_ids: a list of at most 1024 lists of ids is expected")
        words = [ids_of("bad_words_ids", w) for w in words]
        single, first = (ids_of(n, self.files.said(n)) for n in ("suppress_tokens", "begin_suppress_tokens"))
        # An end by itself is no bad word, though it may be suppressed.
        words = [w for w in words if w and not (len(w) == 1 and w[0] in self.ends)] + [(t,) for t in single]
        for token in (*first, *(t for w in words for t in w)):
            if token >= vocabulary:
                raise ValueError(f"words that never come: {token} is no token (the model has {vocabulary})")
        return sampling.Banned(words, first)

    # What is asked.

    def starts(self, settings: Settings) -> list[int]:
        """What an encoder's decoder begins with."""
        if settings.decoder_tokens is None:
            return list(self._starts)
        given = list(settings.decoder_tokens)
        return given if given[:1] == [self._starts[0]] else [self._starts[0], *given]

    def room(self, prompt: int, settings: Settings | None = None) -> int:
        """Tokens that there is room for behind a prompt of so many."""
        return self.capacity - (len(self.starts(settings or Settings())) if self.encoder else prompt)

    def settings(self, given: dict) -> Settings:
        """The Settings of arguments by name, over those of the model."""
        result = settings_of(given, self.files.generation, os.path.join(self.files.folder, "generation_config.json"))
        for name in ("stop_token_ids", "forced_eos_token_id", "logit_bias"):
            wrong = next((t for t in getattr(result, name) if t >= self.interface.vocabulary), None)
            if wrong is not None:
                raise ValueError(f"{name}: {wrong} is no token (the model has {self.interface.vocabulary})")
        if result.stop and not self.tokenizer:
            raise ValueError(
                f"stop: texts need a tokenizer, and there is no tokenizer.json in {self.files.folder}; say stop_token_ids"
            )
        if result.decoder_tokens is not None:
            if not self.encoder:
                raise ValueError("decoder_tokens: the model has no encoder; what its texts begin with is the prompt")
            self._check_tokens("decoder_tokens", result.decoder_tokens, self.interface.vocabulary)
            if self.room(0, result) < 1:
                raise ValueError(f"decoder_tokens: {len(result.decoder_tokens)} tokens leave no room (capacity: {self.capacity})")
        if result.num_beams > self._plan.slots:
            raise ValueError(
                f"num_beams: {result.num_beams} beams, the generator has {self._plan.slots} slots; make it with slots={result.num_beams}"
            )
        return result

    def tokens_of(self, prompt):
        """The ids of a prompt: a text, ids, or the messages of a conversation; features where an encoder reads them."""
        if self.encoder and self.encoder.shape:
            if not _is_array(prompt) or isinstance(prompt, str):
                raise TypeError(f"prompt: features of the shape {list(self.encoder.shape[1:])} are expected, not {type(prompt).__name__}")
            return self.encoder.checked(prompt)
        if isinstance(prompt, str):
            tokens = self._need("a prompt that is a text").encode(prompt)
        elif isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], dict):
            tokens = self.chat_tokens(list(prompt))
        else:
            tokens = [int(t) for t in prompt] if _are_ids(prompt) else None
        if tokens is None:
            raise TypeError(f"prompt: a text, a list of ids or a list of messages is expected, not {type(prompt).__name__}")
        self.check_tokens(tokens)
        return tokens

    def chat_tokens(self, messages: list[dict], **more) -> list[int]:
        """The ids of a conversation, by the model's chat template, which gets `more` as variables."""
        tokenizer = self._need("a conversation")
        if self.template is None:
            raise ValueError(f"a conversation needs a chat template, and there is none in {self.files.folder}")
        return tokenizer.encode(self.template.render(messages_of(messages), **more), special=False)

    def _need(self, what: str) -> Tokenizer:
        if self.tokenizer is None:
            raise ValueError(f"{what} needs a tokenizer, and there is no tokenizer.json in {self.files.folder}; give ids of tokens")
        return self.tokenizer

    def check_tokens(self, tokens: list[int]) -> None:
        if not tokens:
            raise ValueError("the prompt has no token")
        if self.encoder:
            if len(tokens) > self.encoder.most:
                raise ValueError(f"the prompt has {len(tokens)} tokens, {self.encoder.most} are possible (source_capacity)")
            self._check_tokens("the prompt", tokens, self.files.number("vocab_size") or self.interface.vocabulary)
            return
        if len(tokens) >= self.capacity:
            raise ValueError(
                f"the prompt has {len(tokens)} tokens, {self.capacity - 1} are possible (capacity: {self.capacity}, one is to be generated)"
            )
        self._check_tokens("the prompt", tokens, self.interface.vocabulary)

    @staticmethod
    def _check_tokens(where: str, tokens, vocabulary: int) -> None:
        wrong = next((t for t in tokens if not 0 <= t < vocabulary), None)
        if wrong is not None:
            raise ValueError(f"{where} has the token {wrong} (allowed: 0 to {vocabulary - 1})")

    def _check_room(self, prompt, settings: Settings) -> None:
        """Refuses a prompt that is as long as sequences may be."""
        count = len(self.starts(settings)) if self.encoder else len(prompt)
        if settings.limit(count) <= count:
            raise ValueError(f"the prompt has {count} tokens, and max_length is {settings.max_length}; say max_new_tokens, or a larger max_length")

    # What is done.

    def submit(self, sequence: Sequence) -> None:
        if self.encoder:
            sequence.source, sequence.prompt = sequence.prompt, self.starts(sequence.settings)
        with self._turn:
            self.scheduler.submit(sequence)

    def advance(self, pieces) -> None:
        """Takes a step, unless another thread's step has brought one of the pieces meanwhile."""
        with self._turn:
            if not pieces:
                self.scheduler.step()

    def scheduler_step(self) -> bool:
        """Takes a step; whether there is more to do."""
        with self._turn:
            return self.scheduler.step()

    def rehearse(self) -> None:
        """Makes ready, before anybody waits, what steps of so many sequences and pieces of prompts need."""
        with self._turn:
            self.scheduler.idle()
            self.scheduler.rehearse()

    def cancel_all(self) -> None:
        """Ends all sequences."""
        with self._turn:
            self.scheduler.cancel_all()

    def stream(self, prompt, **settings) -> Stream:
        """An iterator over the pieces of one sequence, whose steps are taken as it is asked."""
        chosen = self.settings(settings)
        if chosen.num_beams > 1:
            raise ValueError("num_beams: what beams find is known at their end; generate() has them")
        tokens = self.tokens_of(prompt)
        self._check_room(tokens, chosen)
        return Stream(self, tokens, chosen)

    def generate(self, prompts, **settings):
        """A Generation for a prompt, a list of them for a list. A prompt is a text, a list of ids, or a list of messages; the number of a
        prompt in the list is that of its sequence within the seed."""
        single = (
            isinstance(prompts, str)
            or _are_ids(prompts)
            or self._are_features(prompts)
            or (isinstance(prompts, (list, tuple)) and prompts and isinstance(prompts[0], dict))
        )
        chosen = self.settings(settings)
        given = [self.tokens_of(p) for p in ([prompts] if single else prompts)]
        for prompt in given:
            self._check_room(prompt, chosen)
        if chosen.num_beams > 1:
            results = [self._search(p, chosen) for p in given]
        else:
            streams = [Stream(self, p, chosen, number) for number, p in enumerate(given)]
            results = [self._collected(s, chosen) for s in streams]
        return results[0] if single else results

    def _are_features(self, prompts) -> bool:
        """Whether a prompt is one of features."""
        shape = self.encoder.shape if self.encoder else None
        return bool(shape) and _is_array(prompts) and len(prompts.shape) in (len(shape) - 1, len(shape)) and prompts.shape[0] == shape[-len(prompts.shape)]

    def _collected(self, stream: Stream, settings: Settings) -> Generation:
        result = Generation(prompt_tokens=stream.prompt_tokens, text="" if self.tokenizer else None)
        for piece in stream:
            if piece.token is not None:
                result.tokens.append(piece.token)
            if settings.logprobs is not None:
                result.logprobs.append(piece.logprob)
                result.top.append(piece.top)
            if self.tokenizer:
                result.text += piece.text
            result.reason = piece.reason or result.reason
        return result

    def _search(self, prompt: list[int], settings: Settings) -> Generation:
        beams_ = settings.num_beams
        # Beams that say again what has been read are words that never come.
        banned = self._banned.with_more(ngrams(prompt, settings.encoder_no_repeat_ngram_size) if isinstance(prompt, list) else [])
        with self._turn:
            key = beams_, banned.length
            if key not in self._beams:
                ends = max(1, len(self.ends))
                self._beams[key] = beams.engine(self.interface.vocabulary, beams_, ends, banned.length, self._plan, self._cache)
            self.scheduler.idle()
            read = len(prompt)
            if self.encoder:
                self.runs.open(0, prompt)
                prompt = self.starts(settings)
            tokens, score = beams.search(self.runs, self._beams[key], prompt, settings, self.ends, banned)
        ended = bool(tokens) and tokens[-1] in self.ends
        text = self.tokenizer.decode(tokens[:-1] if ended else tokens) if self.tokenizer else None
        return Generation(tokens, text, "stop" if ended else "length", read, score=score)


def _are_ids(prompt) -> bool:
    """Whether a prompt is one of ids. A list of nothing is one."""
    if hasattr(prompt, "dtype"):
        return prompt.ndim == 1 and prompt.dtype.kind in "iu"
    return isinstance(prompt, (list, tuple)) and all(isinstance(t, numbers.Integral) and not isinstance(t, bool) for t in prompt)


def _is_array(value) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def beams_of(model, given: dict) -> int:
    """How many beams settings ask for, or the model's configuration."""
    files = files_of(model)
    return settings_of(given, files.generation, os.path.join(files.folder, "generation_config.json"), chosen=False).num_beams


def generate(
    model,
    prompts,
    max_new_tokens=None,
    *,
    tokenizer=None,
    slots=None,
    capacity=None,
    source_capacity=None,
    chunk=128,
    pages=None,
    precision="fp32",
    device=None,
    cache=True,
    progress=None,
    **settings,
):
    """What a decoder model says behind prompts: a Generation for one, a list of them for a list. A prompt is a text, a list of ids, or a list of
    messages. model and the named arguments: as of Generator, which is worth keeping for more than one call; max_new_tokens (None: what the
    model's generation_config.json says, else 128) and settings: of Settings."""
    if slots is None:
        slots = 1 if isinstance(prompts, str) or _are_ids(prompts) else 8
        slots = max(slots, beams_of(model, settings))
    made = Generator(
        model,
        tokenizer=tokenizer,
        slots=slots,
        capacity=capacity,
        source_capacity=source_capacity,
        chunk=chunk,
        pages=pages,
        precision=precision,
        device=device,
        cache=cache,
        progress=progress,
    )
    return made.generate(prompts, max_new_tokens=max_new_tokens, **settings)
