# SPDX-License-Identifier: Apache-2.0
"""OpenAI's requests for completions, and their answers, as objects of JSON; whichever way they travel."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from dataclasses import dataclass, field

from ..generation import Generator, Piece, Settings
from .generating import Engine, Job
from .inference import INTERNAL
from .requests import json_object
from .tensors import RequestError, shown
from .token_texts import Shown, TokenTexts

log = logging.getLogger("tensorwright.serve")
# Sequences that a request may ask for of each prompt, and tokens beside the chosen one that may be told of.
_MOST_CHOICES, _MOST_TOP = 128, 20
# Bytes that a token takes with its text, and one that is told of beside it.
_BYTES = 200
# Fields that are settings under another name or the same.
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "stop": "stop",
    "seed": "seed",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    "repeat_penalty": "repetition_penalty",
    "logit_bias": "logit_bias",
    "stop_token_ids": "stop_token_ids",
    "min_tokens": "min_new_tokens",
}
# Fields of OpenAI's that would change the answer, with what they may be: all else would be an answer that nobody asked for.
_NOT_THERE = {
    "suffix": (None, ""),
    "tools": (None, []),
    "functions": (None, []),
    "tool_choice": (None, "none", "auto"),
    "response_format": (None, {"type": "text"}),
    "modalities": (None, ["text"]),
    "audio": (None,),
    "prediction": (None,),
    "web_search_options": (None,),
}
# And of those that other servers have beyond them.
_NOT_THERE |= dict.fromkeys(("guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "json_schema"), (None,))
_NOT_THERE |= dict.fromkeys(("use_beam_search", "ignore_eos", "include_stop_str_in_output", "continue_final_message"), (None, False))
_NOT_THERE |= dict.fromkeys(("bad_words", "allowed_token_ids", "logits_processors"), (None, []))
_NOT_THERE |= dict.fromkeys(("skip_special_tokens", "spaces_between_special_tokens", "add_generation_prompt"), (None, True))
_NOT_THERE |= dict.fromkeys(("mirostat", "dry_multiplier", "xtc_probability"), (None, 0))
_NOT_THERE |= {"typical_p": (None, 1), "grammar": (None, ""), "prompt_logprobs": (None,), "truncate_prompt_tokens": (None,)}


@dataclass
class Asked:
    """A request that has been read: `chat` or completion; prompts as tokens, `texts` of them for echo; `count` answers of each, which are the best of
    `tried` sequences."""

    chat: bool
    model: str
    prompts: list[list[int]]
    settings: Settings
    count: int = 1
    tried: int = 1
    stream: bool = False
    usage: bool = False
    top: int | None = None  # None: no log probabilities
    texts: list[str] = field(default_factory=list)
    ids: bool = False
    identity: str = ""
    created: int = 0

    def most_bytes(self) -> int:
        """Memory that the answer may take, roughly."""
        return len(self.prompts) * self.tried * self.settings.max_new_tokens * (_BYTES + _BYTES * (self.top or 0))


def read_request(engines: dict[str, Engine], data: bytes, chat: bool) -> tuple[Engine, Asked]:
    """What a request's body asks of which engine."""
    value = json_object(data)
    name = value.get("model")
    if name is None and len(engines) == 1:
        name = next(iter(engines))
    if not isinstance(name, str) or name not in engines:
        raise RequestError(f"there is no model {shown(name)} that generates (there are: {', '.join(engines)})", 404)
    return engines[name], read(engines[name].generator, value, chat)


def _field(value: dict, name: str, kinds, default=None):
    found = value.get(name)
    if found is None:
        return default
    if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in (kinds if isinstance(kinds, tuple) else (kinds,))):
        what = {bool: "true or false", int: "a whole number", str: "text", dict: "an object"}[
            kinds if isinstance(kinds, type) else kinds[0]
        ]
        raise RequestError(f"{name}: {what} is expected, not {shown(found)}")
    return found


def read(generator: Generator, value: dict, chat: bool) -> Asked:
    """The Asked of a request's JSON. What is wrong with it is a RequestError."""
    for name, allowed in _NOT_THERE.items():
        if value.get(name) not in allowed:
            raise RequestError(f"{name}: {shown(value[name])} is not supported")
    count = _field(value, "n", int, 1)
    if not 1 <= count <= _MOST_CHOICES:
        raise RequestError(f"n: {count} is out of range (allowed: 1 to {_MOST_CHOICES})")
    stream = _field(value, "stream", bool, False)
    tried = _tried(value, chat, count, stream)
    options = _field(value, "stream_options", dict, {})
    if options and not stream:
        raise RequestError("stream_options: they are for answers that go as they come (stream)")
    echo = _field(value, "echo", bool, False)
    if echo and (chat or value.get("logprobs") is not None):
        raise RequestError("echo: chats have none" if chat else "echo: there are no log probabilities of a prompt's tokens; ask without logprobs")
    try:
        texts, prompts = _prompts(generator, value, chat)
        settings, top = _settings(generator, value, chat, max(map(len, prompts)))
    except (ValueError, TypeError) as error:
        raise RequestError(str(error).replace("max_new_tokens", "max_tokens")) from None
    return Asked(
        chat,
        _field(value, "model", str, generator.name),
        prompts,
        settings,
        count,
        tried,
        stream,
        stream and _field(options, "include_usage", bool, False),
        top,
        texts if echo else [],
        _field(value, "return_token_ids", bool, False) or generator.tokenizer is None,
        ("chatcmpl-" if chat else "cmpl-") + secrets.token_hex(12),
        int(time.time()),
    )


def _tried(value: dict, chat: bool, count: int, stream: bool) -> int:
    """Sequences of each prompt."""
    tried = _field(value, "best_of", int, count)
    if tried == count:
        return count
    if chat:
        raise RequestError("best_of: chats have none")
    if not count <= tried <= _MOST_CHOICES:
        raise RequestError(f"best_of: {tried} is out of range (allowed: n, which is {count}, to {_MOST_CHOICES})")
    if stream:
        raise RequestError("best_of: which answers are best is known when all have ended, so they cannot go as they come (stream)")
    return tried


def _prompts(generator: Generator, value: dict, chat: bool) -> tuple[list[str], list[list[int]]]:
    if chat:
        more = dict(_field(value, "chat_template_kwargs", dict, {}))
        if "messages" in more:
            raise RequestError("chat_template_kwargs: messages have a field of their own")
        tokens = generator.chat_tokens(value.get("messages"), **more)
        generator.check_tokens(tokens)
        return [], [tokens]
    given = value.get("prompt")
    if isinstance(given, str) or (isinstance(given, list) and given and all(type(t) is int for t in given)):
        given = [given]
    if not isinstance(given, list) or not given or len(given) > 4096:
        raise RequestError(f"prompt: a text, a list of tokens, or a list of these is expected, not {shown(given)}")
    for prompt in given:
        if not isinstance(prompt, str) and not (isinstance(prompt, list) and all(type(t) is int for t in prompt)):
            raise RequestError(f"prompt: {shown(prompt)} is neither a text nor a list of tokens")
    prompts = [generator.tokens_of(p) for p in given]
    return [p if isinstance(p, str) else _decoded(generator, p) for p in given], prompts


def _decoded(generator: Generator, tokens: list[int]) -> str:
    return generator.tokenizer.decode(tokens) if generator.tokenizer else ""


def _settings(generator: Generator, value: dict, chat: bool, longest: int) -> tuple[Settings, int | None]:
    given = {ours: value[theirs] for theirs, ours in _SETTINGS.items() if value.get(theirs) is not None}
    given.setdefault("seed", secrets.randbits(63))
    given["do_sample"] = True  # a temperature of 0 says otherwise
    most = (
        value.get("max_completion_tokens") if chat and value.get("max_completion_tokens") is not None else value.get("max_tokens")
    )
    room = generator.room(longest)
    if most is None:
        most = room if chat else min(16, room)
    given["max_new_tokens"], given["num_beams"] = most, 1
    top = value.get("logprobs")
    if chat:
        wanted, top = _field(value, "logprobs", bool, False), _field(value, "top_logprobs", int, None)
        if top and not wanted:
            raise RequestError("top_logprobs: they are there with logprobs alone")
        top = (top or 0) if wanted else None
    if top is not None and (not isinstance(top, int) or isinstance(top, bool) or not 0 <= top <= _MOST_TOP):
        raise RequestError(f"{'top_logprobs' if chat else 'logprobs'}: {shown(top)} is out of range (allowed: 0 to {_MOST_TOP})")
    settings = generator.settings({**given, "logprobs": top})
    if settings.max_new_tokens > room and generator.encoder:
        raise RequestError(f"max_tokens: {settings.max_new_tokens} are more than the {room} that an answer has room for")
    if settings.max_new_tokens > room:
        raise RequestError(
            f"max_tokens: a prompt of {longest} tokens and {settings.max_new_tokens} more are longer than the {generator.capacity} of a sequence"
        )
    return settings, top


class Choice:
    """What has come of one sequence."""

    def __init__(self, index: int):
        self.index, self.parts, self.tokens, self.logs, self.reason, self.sum = index, [], [], [], None, 0.0

    def add(self, piece: Piece, log) -> None:
        self.parts.append(piece.text)
        if piece.token is not None:
            self.tokens.append(piece.token)
            self.logs.append(log)
            self.sum += piece.logprob
        self.reason = piece.reason or self.reason

    def score(self) -> float:
        """Log probability of a token."""
        return self.sum / max(len(self.tokens), 1)


class Answer:
    """Makes the objects of an answer to `asked`."""

    def __init__(self, generator: Generator, asked: Asked):
        self.generator, self.asked = generator, asked
        self.choices = [Choice(i) for i in range(len(asked.prompts) * asked.tried)]
        self._texts = [] if asked.top is None else [TokenTexts(generator.tokenizer, self._last(c), len(self._echo(c))) for c in self.choices]

    def _last(self, choice: Choice) -> int | None:
        """The token that an answer is behind; that of an encoder is no part of it."""
        return None if self.generator.encoder else self.asked.prompts[choice.index // self.asked.tried][-1]

    def _log(self, index: int, piece: Piece):
        """The piece's token in log probabilities, if they are asked for."""
        if piece.token is None or self.asked.top is None:
            return None
        return self._texts[index].add(piece.token, piece.logprob, piece.top)

    def _best(self) -> list[Choice]:
        """The choices that are given, numbered anew."""
        if self.asked.tried == self.asked.count:
            return self.choices
        given = []
        for first in range(0, len(self.choices), self.asked.tried):
            of_prompt = sorted(self.choices[first : first + self.asked.tried], key=lambda c: -c.score())
            given += of_prompt[: self.asked.count]
        return given

    async def whole(self, job: Job) -> dict:
        """The answer in one."""
        while pieces := await job.next():
            for index, piece in pieces:
                self.choices[index].add(piece, self._log(index, piece))
        choices = [self._choice(c) | {"index": i} for i, c in enumerate(self._best())]
        return self._object("chat.completion" if self.asked.chat else "text_completion", choices, self.usage())

    async def chunks(self, job: Job):
        """The parts of an answer that goes as it comes."""
        kind = "chat.completion.chunk" if self.asked.chat else "text_completion"
        begun = set()
        while pieces := await job.next():
            for index, piece in pieces:
                log = self._log(index, piece)
                self.choices[index].add(piece, log)
                first = index not in begun
                begun.add(index)
                part = Choice(index)
                part.add(piece, log)
                yield self._object(kind, [self._part(part, first)])
        if self.asked.usage:
            yield self._object(kind, [], self.usage())

    def usage(self) -> dict:
        read, made = sum(map(len, self.asked.prompts)), sum(len(c.tokens) for c in self.choices)
        return {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}

    def _object(self, kind: str, choices: list, usage: dict | None = None) -> dict:
        asked = self.asked
        result = {"id": asked.identity, "object": kind, "created": asked.created, "model": asked.model, "choices": choices}
        return result if usage is None and not asked.usage else {**result, "usage": usage}

    def _with(self, choice: Choice, result: dict) -> dict:
        result["logprobs"] = self._logs(choice) if self.asked.top is not None else None
        result["finish_reason"] = choice.reason
        if self.asked.ids:
            result["token_ids"] = choice.tokens
        return result

    def _choice(self, choice: Choice) -> dict:
        text = "".join(choice.parts)
        if self.asked.chat:
            return self._with(choice, {"index": choice.index, "message": {"role": "assistant", "content": text}})
        return self._with(choice, {"index": choice.index, "text": self._echo(choice) + text})

    def _part(self, choice: Choice, first: bool) -> dict:
        text = "".join(choice.parts)
        if self.asked.chat:
            delta = ({"role": "assistant"} if first else {}) | ({"content": text} if text or first else {})
            return self._with(choice, {"index": choice.index, "delta": delta})
        return self._with(choice, {"index": choice.index, "text": (self._echo(choice) if first else "") + text})

    def _echo(self, choice: Choice) -> str:
        return self.asked.texts[choice.index // self.asked.tried] if self.asked.texts else ""

    def _logs(self, choice: Choice) -> dict:
        if self.asked.chat:

            def entry(shown: Shown) -> dict:
                return {"token": shown.text, "logprob": shown.logprob, "bytes": shown.bytes}

            return {"content": [{**entry(t), "top_logprobs": [entry(o) for o in top]} for t, top in choice.logs], "refusal": None}
        # The token itself is among those that are told of, likely or not.
        likely = [{o.text: o.logprob for o in (*top, t)} for t, top in choice.logs]
        return {
            "tokens": [t.text for t, _ in choice.logs],
            "token_logprobs": [t.logprob for t, _ in choice.logs],
            "top_logprobs": likely if self.asked.top else None,
            "text_offset": [t.offset for t, _ in choice.logs],
        }


def error(text: str, status: int) -> dict:
    """As OpenAI's clients expect a failure."""
    kinds = {404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


def model(name: str, created: int) -> dict:
    return {"id": name, "object": "model", "created": created, "owned_by": "tensorwright"}


def _line(value: dict) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


async def events(answer: Answer, job: Job):
    """The events of an answer that goes as it comes. What fails before the first is raised, as it can have a status; what fails later is an
    event."""
    begun = False
    try:
        async for chunk in answer.chunks(job):
            yield _line(chunk)
            begun = True
        yield b"data: [DONE]\n\n"
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as failure:
        if not begun:
            raise
        if not isinstance(failure, RequestError):
            log.exception("an answer of model %s", answer.asked.model)
            failure = RequestError(INTERNAL, 500)
        yield _line(error(str(failure), failure.status))
