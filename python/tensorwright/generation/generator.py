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
from . import beams, build, runs, sampling
from .chat import messages_of, special_of, template_of
from .files import files_of
from .interface import SIZES, interface_of, tensors_of_engine
from .scheduler import Piece, Scheduler, Sequence
from .settings import Settings, ids_of, settings_of
from .text import Tokenizer

# Tokens of a sequence where the caller does not say how many, and the model many or nothing.
_USUAL_CAPACITY = 2048


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
    chunk: tokens of a prompt that are read between two steps of the others. reuse: a prompt that begins as one before it is read from where
        they differ.
    precision, device, cache, progress: as of compile()."""

    def __init__(
        self,
        model,
        *,
        tokenizer=None,
        slots=8,
        capacity=None,
        chunk=128,
        reuse=True,
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
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"{name}: {value!r} is out of range (allowed: {low} to {high})")
        self.files = files_of(model)
        self.name = self.files.name
        self.ends = ids_of("eos_token_id", self.files.ends())
        most = self.files.most_positions()
        if capacity is None:
            capacity = max(2, min(most or _USUAL_CAPACITY, _USUAL_CAPACITY))
        elif not most:
            most = capacity
        elif capacity > most:
            raise ValueError(f"capacity: {capacity} tokens, the model was made for {most}")
        settings_of({}, self.files.generation, os.path.join(self.files.folder, "generation_config.json"))
        if slots * capacity >= 2**31:
            raise ValueError(f"{slots} slots of {capacity} tokens: their product has to be less than 2147483648")
        # The last eighth of what the model was made for is read token by token.
        chunk = max(1, min(chunk, capacity, (most or 2**30) // 8))
        self._load(
            build.Plan(True, slots, chunk, capacity, max(most, 2) if most else 0, precision, _memory.resolve(device)),
            cache,
            progress,
        )
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
        sampler = sampling.Sampler(sampling.engine(vocabulary, kind, max(1, len(self.ends)), self._plan, cache), self.ends)
        self.scheduler = Scheduler(self.runs, sampler, self.tokenizer, self.ends, reuse)
        self._cache, self._turn, self._beams = cache, threading.Lock(), {}

    def __repr__(self):
        kind = type(self.runs).__name__.lower()
        return f"<tensorwright.Generator {self.name} on {self.model.device}: {self._plan.slots} sequences of {self.capacity} tokens, caches {kind}>"

    def _load(self, plan: build.Plan, cache, progress) -> None:
        """The engine with the best caches that the model can have."""
        failure = None
        config = {n: v for n, v in self.files.config.items() if n in SIZES and isinstance(v, int)}
        for in_place in (True, False):
            asked = dataclasses.replace(plan, in_place=in_place)
            try:
                self.model = build.decoder(self.files.onnx, asked, config, cache, progress)
            except RuntimeError as error:
                failure = failure or error
                continue
            found = self.interface = interface_of(tensors_of_engine(self.model.engine), config)
            fixed = found.caches[0].capacity if found.caches else -1
            self._plan = dataclasses.replace(asked, capacity=min(plan.capacity, fixed) if fixed > 0 else plan.capacity)
            if not found.caches:
                self.runs = runs.Whole(self.model, found, self._plan)
                return
            if not in_place or runs.grows(self.model, found, self._plan):
                if fixed > 0 or runs.least(self.model, found):
                    continue  # what was built is for caches that stay as long as they are
                self.runs = runs.Growing(self.model, found, self._plan)
                return
            if found.batch == 1:
                self._plan = dataclasses.replace(self._plan, slots=1)
            self.runs = runs.Slots(self.model, found, self._plan)
            if runs.masks_well(self.runs):
                return
        if failure:
            unknown = "" if plan.limit else "; nothing says how many tokens the model was made for: capacity may"
            raise RuntimeError(f"{self.files.onnx}: {failure}{unknown}")
        raise ValueError(
            f"{self.files.onnx}: caches of one size only come out with another; the sizes of past_key_values have to be open"
        )

    # What is asked.

    def settings(self, given: dict) -> Settings:
        """The Settings of arguments by name, over those of the model."""
        result = settings_of(given, self.files.generation, os.path.join(self.files.folder, "generation_config.json"))
        for token in result.stop_token_ids:
            if token >= self.interface.vocabulary:
                raise ValueError(f"stop_token_ids: {token} is no token (the model has {self.interface.vocabulary})")
        if result.stop and not self.tokenizer:
            raise ValueError(
                f"stop: texts need a tokenizer, and there is no tokenizer.json in {self.files.folder}; say stop_token_ids"
            )
        if result.num_beams > self._plan.slots:
            raise ValueError(
                f"num_beams: {result.num_beams} beams, the generator has {self._plan.slots} slots; make it with slots={result.num_beams}"
            )
        return result

    def tokens_of(self, prompt) -> list[int]:
        """The ids of a prompt: a text, ids, or the messages of a conversation."""
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
        if len(tokens) >= self.capacity:
            raise ValueError(
                f"the prompt has {len(tokens)} tokens, {self.capacity - 1} are possible (capacity: {self.capacity}, one is to be generated)"
            )
        wrong = next((t for t in tokens if not 0 <= t < self.interface.vocabulary), None)
        if wrong is not None:
            raise ValueError(f"the prompt has the token {wrong} (allowed: 0 to {self.interface.vocabulary - 1})")

    # What is done.

    def submit(self, sequence: Sequence) -> None:
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

    def cancel_all(self) -> None:
        """Ends all sequences."""
        with self._turn:
            self.scheduler.cancel_all()

    def stream(self, prompt, **settings) -> Stream:
        """An iterator over the pieces of one sequence, whose steps are taken as it is asked."""
        chosen = self.settings(settings)
        if chosen.num_beams > 1:
            raise ValueError("num_beams: what beams find is known at their end; generate() has them")
        return Stream(self, self.tokens_of(prompt), chosen)

    def generate(self, prompts, **settings):
        """A Generation for a prompt, a list of them for a list. A prompt is a text, a list of ids, or a list of messages; the number of a
        prompt in the list is that of its sequence within the seed."""
        single = (
            isinstance(prompts, str)
            or _are_ids(prompts)
            or (isinstance(prompts, (list, tuple)) and prompts and isinstance(prompts[0], dict))
        )
        chosen = self.settings(settings)
        given = [self.tokens_of(p) for p in ([prompts] if single else prompts)]
        if chosen.num_beams > 1:
            results = [self._search(p, chosen) for p in given]
        else:
            streams = [Stream(self, p, chosen, number) for number, p in enumerate(given)]
            results = [self._collected(s, chosen) for s in streams]
        return results[0] if single else results

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
        with self._turn:
            if beams_ not in self._beams:
                ends = max(1, len(self.ends))
                self._beams[beams_] = beams.engine(self.interface.vocabulary, beams_, ends, self._plan, self._cache)
            self.scheduler.idle()
            tokens, score = beams.search(self.runs, self._beams[beams_], prompt, settings, self.ends)
        ended = bool(tokens) and tokens[-1] in self.ends
        text = self.tokenizer.decode(tokens[:-1] if ended else tokens) if self.tokenizer else None
        return Generation(tokens, text, "stop" if ended else "length", len(prompt), score=score)


def _are_ids(prompt) -> bool:
    """Whether a prompt is one of ids. A list of nothing is one."""
    if hasattr(prompt, "dtype"):
        return prompt.ndim == 1 and prompt.dtype.kind in "iu"
    return isinstance(prompt, (list, tuple)) and all(isinstance(t, numbers.Integral) and not isinstance(t, bool) for t in prompt)


def generate(
    model,
    prompts,
    max_new_tokens=None,
    *,
    tokenizer=None,
    slots=None,
    capacity=None,
    chunk=128,
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
        beams_ = settings.get("num_beams")
        slots = max(slots, beams_) if isinstance(beams_, int) else slots
    made = Generator(
        model,
        tokenizer=tokenizer,
        slots=slots,
        capacity=capacity,
        chunk=chunk,
        precision=precision,
        device=device,
        cache=cache,
        progress=progress,
    )
    return made.generate(prompts, max_new_tokens=max_new_tokens, **settings)
