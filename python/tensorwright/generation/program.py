# SPDX-License-Identifier: Apache-2.0
"""`tensorwright generate`."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from .generator import Generator, beams_of
from .settings import Settings

# Options that are settings, with what they say of themselves.
_SETTINGS = {
    "max_new_tokens": (int, "tokens at most; default: the model's, else 128"),
    "min_new_tokens": (int, "tokens before which none ends the text"),
    "max_length": (int, "tokens at most, those of the prompt counted"),
    "min_length": (int, "tokens before which none ends the text, those of the prompt counted"),
    "temperature": (float, "0: the best token, without chance; default: the model's"),
    "top_k": (int, "the k best tokens alone"),
    "top_p": (float, "the best tokens alone that have this share together"),
    "min_p": (float, "tokens alone that have this share of the best one's"),
    "repetition_penalty": (float, "above 1: less of what has been"),
    "presence_penalty": (float, "taken from tokens that have come"),
    "frequency_penalty": (float, "taken for each time that a token has come"),
    "no_repeat_ngram_size": (int, "so many tokens in a row never come twice"),
    "encoder_repetition_penalty": (float, "above 1: more of what has been read"),
    "encoder_no_repeat_ngram_size": (int, "so many tokens in a row of what has been read do not come"),
    "num_beams": (int, "beam search; the text comes at its end"),
    "length_penalty": (float, "of beams"),
    "seed": (int, "of the draws; default: 0"),
}


def add(commands) -> None:
    """The command and its options."""
    command = commands.add_parser("generate", help="writes what a decoder model says behind a prompt")
    command.add_argument("model", help="a folder with model.onnx, tokenizer.json, ..., or an ONNX file")
    prompt = command.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="what the text begins with; -: standard input")
    prompt.add_argument("--chat", metavar="TEXT", help="what a user says; the model's chat template makes a prompt of it")
    prompt.add_argument("--tokens", metavar="ID,ID,...", help="ids of tokens; ids come out, a line each")
    prompt.add_argument("--features", metavar="FILE.npy", help="what the encoder reads: sound or pictures as a NumPy array")
    command.add_argument("--decoder-tokens", metavar="ID,ID,...", help="ids that an encoder's decoder begins with; default: the model's")
    for name, (kind, text) in _SETTINGS.items():
        command.add_argument("--" + name.replace("_", "-"), type=kind, metavar="N" if kind is int else "X", help=text)
    command.add_argument("--stop", action="append", metavar="TEXT", help="ends the text; may be given several times")
    command.add_argument("--tokenizer", metavar="FILE", help="another tokenizer.json than that beside the model")
    command.add_argument(
        "--capacity", type=int, metavar="N", help="tokens of prompt and text at most; default: the model's, at most 2048"
    )
    command.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "int8", "best"))
    command.add_argument("--no-cache", action="store_true", help="neither read nor keep engines")
    command.add_argument("--json", action="store_true", help="tokens, text, reason and times as one line of JSON, at the end")
    command.add_argument("--device", help="cpu, cuda or cuda:N")


def main(options) -> int:
    given = {name: getattr(options, name) for name in _SETTINGS if getattr(options, name) is not None}
    given |= {"stop": options.stop} if options.stop else {}
    given |= {"decoder_tokens": _ids("--decoder-tokens", options.decoder_tokens)} if options.decoder_tokens is not None else {}
    Settings(**given)  # what is wrong by itself needs no engine
    slots = beams_of(options.model, given)
    tokenizer = False if options.tokens is not None and not options.stop else options.tokenizer
    start = time.perf_counter()
    generator = Generator(
        options.model,
        tokenizer=tokenizer,
        slots=slots,
        capacity=options.capacity,
        precision=options.precision,
        device=options.device,
        cache=not options.no_cache,
    )
    ready = time.perf_counter()
    prompt = _prompt(options)
    if slots > 1:
        result = generator.generate(prompt, **given)
        tokens, text, reason, first = result.tokens, result.text, result.reason, None
        if not options.json:
            print(text if text is not None else "\n".join(map(str, tokens)))
    else:
        tokens, text, reason, first = _streamed(generator, prompt, given, options)
    end = time.perf_counter()
    if options.json:
        print(
            json.dumps(
                {
                    "tokens": tokens,
                    "text": text,
                    "reason": reason,
                    "load_seconds": ready - start,
                    "seconds": end - ready,
                    "first_token_seconds": first,
                }
            )
        )
        return 0
    rate = f", {(len(tokens) - 1) / (end - ready - first):.1f} tokens/s behind it" if first is not None and len(tokens) > 1 else ""
    begin = f", the first token after {1000 * first:.0f} ms" if first is not None else ""
    print(f"{len(tokens)} tokens in {end - ready:.2f} s{begin}{rate}; loaded in {ready - start:.1f} s", file=sys.stderr)
    return 0


def _ids(option: str, text: str) -> list[int]:
    try:
        return [int(t) for t in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: {text[:80]!r} is no list of ids") from None


def _prompt(options):
    if options.tokens is not None:
        return _ids("--tokens", options.tokens)
    if options.features is not None:
        try:
            return np.load(options.features, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"--features: {options.features} is no array of NumPy: {str(error)[:200]}") from None
    if options.chat is not None:
        return [{"role": "user", "content": options.chat}]
    return sys.stdin.read() if options.prompt == "-" else options.prompt


def _streamed(generator, prompt, given, options):
    """(tokens, text, reason, seconds to the first token), which are shown as they come."""
    begin, first, tokens, parts, reason = time.perf_counter(), None, [], [], None
    ids = generator.tokenizer is None
    for piece in generator.stream(prompt, **given):
        first = time.perf_counter() - begin if first is None else first
        if piece.token is not None:
            tokens.append(piece.token)
        parts.append(piece.text)
        reason = piece.reason or reason
        if not options.json:
            print(piece.token if ids else piece.text, end="\n" if ids else "", flush=True)
    if not ids and not options.json:
        print()
    return tokens, None if ids else "".join(parts), reason, first
