# SPDX-License-Identifier: Apache-2.0
"""Prompts of conversations by a model's chat template, which a process of its own runs (template_worker.py)."""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading

_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "template_worker.py")
_SECONDS = 5.0
# Names of special tokens that templates use.
_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


class Template:
    """The chat template of a model: render() gives the prompt of messages, [{"role": ..., "content": ...}]."""

    def __init__(self, text: str, where: str, tokens: dict | None = None):
        if importlib.util.find_spec("jinja2") is None:
            raise ImportError(f"{where} has a chat template, which needs the package jinja2 (pip install 'tensorwright[generate]')")
        self.text, self.where = text, where
        self._tokens = special_of(tokens or {})
        self._turn, self._process, self._lines = threading.Lock(), None, None

    def render(self, messages: list[dict], **more) -> str:
        variables = {**self._tokens, "messages": messages, "add_generation_prompt": True, **more}
        text = json.dumps([self.text, variables])
        with self._turn:
            if self._process is None or self._process.poll() is not None:
                self._start()
            try:
                self._process.stdin.write(text.encode() + b"\n")
                self._process.stdin.flush()
                line = self._lines.get(timeout=_SECONDS)
                result, error = json.loads(line) if line else (None, "its process ended")
            except queue.Empty:
                result, error = None, f"it runs longer than {_SECONDS:g} s"
                self._end()
            except (OSError, ValueError):
                result, error = None, "its process ended"
                self._end()
        if error:
            raise ValueError(f"the chat template of {self.where} cannot be used: {error}")
        return result

    def _start(self):
        self._end()
        environment = {n: v for n, v in os.environ.items() if n in ("PATH", "PYTHONPATH", "LANG", "TZ", "VIRTUAL_ENV")}
        self._process = subprocess.Popen(
            [sys.executable, _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._lines = queue.Queue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()

    def _end(self):
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            process.stdin.close()

    def close(self):
        with self._turn:
            self._end()

    def __del__(self):
        if getattr(self, "_process", None) is not None:
            self._end()


def _read(pipe, lines):
    """Lines of the process, and None when it has ended."""
    with pipe:
        for line in pipe:
            lines.put(line)
    lines.put(None)


def special_of(config: dict) -> dict[str, str]:
    """The special tokens of a tokenizer_config.json, which has them as texts or as objects."""
    texts = {n: v.get("content") if isinstance(v, dict) else v for n, v in config.items() if n in _SPECIAL}
    return {n: v for n, v in texts.items() if isinstance(v, str)}


def template_of(folder: str, config: dict) -> Template | None:
    """The template of a model's folder: chat_template.jinja, else what tokenizer_config.json says."""
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            return Template(file.read(1 << 21), path, config)
    text = config.get("chat_template")
    if isinstance(text, list):  # several by name
        named = [t for t in text if isinstance(t, dict)]
        text = next((t.get("template") for t in sorted(named, key=lambda t: t.get("name") != "default")), None)
    return Template(text, os.path.join(folder, "tokenizer_config.json"), config) if isinstance(text, str) and text else None


def messages_of(value) -> list[dict]:
    """Messages as a template expects them."""
    if not isinstance(value, list) or not value:
        raise ValueError("messages: a list of at least one message is expected")
    return [_message(m) for m in value]


def _message(message) -> dict:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ValueError('messages: a message is an object with "role" and "content"')
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content]
        if not all(isinstance(t, str) for t in texts):
            raise ValueError("messages: content is text; there is nothing here for images or sounds")
        return {**message, "content": "".join(texts)}
    if not isinstance(content, str) and not (content is None and message.get("tool_calls")):
        raise ValueError("messages: content is text, or a list of parts of type text")
    return message
