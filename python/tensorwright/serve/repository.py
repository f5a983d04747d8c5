# SPDX-License-Identifier: Apache-2.0
"""The models of a server: which plans there are, loading them, and putting a new one in the place of an old one."""

import dataclasses
import json
import logging
import os
import re
import threading

from .served import Closed, Options, ServedModel
from .tensors import RequestError, shown

log = logging.getLogger("tensorwright.serve")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}\Z")
_VERSION = re.compile(r"[1-9][0-9]{0,8}\Z")


def sources_of(arguments):
    """Of the command line's PLAN, NAME=PLAN and FOLDER: a function that gives the plan files there are at present as
    {(model, version): (path, file of options or None)}."""
    files, folders = {}, []
    for argument in arguments:
        if os.path.isdir(argument):
            folders.append(argument)
            continue
        name, equals, path = argument.partition("=")
        if not equals or os.path.exists(argument):
            name, path = os.path.splitext(os.path.basename(argument))[0], argument
        if not _NAME.match(name):
            raise ValueError(f"{argument}: {name!r} is no name of a model (letters, digits, _ - .); say NAME=PLAN")
        if (name, "1") in files:
            raise ValueError(f"{argument}: a model is called {name!r} already; say NAME=PLAN")
        if not os.path.isfile(path):
            raise FileNotFoundError(f"there is no plan {path}")
        files[name, "1"] = (path, None)

    def present():
        result = dict(files)
        for folder in folders:
            for key, value in _in_folder(folder):
                result.setdefault(key, value)
        return result

    return present


def _in_folder(folder):
    """FOLDER/MODEL/VERSION/model.plan with FOLDER/MODEL/serve.json, and FOLDER/MODEL.plan as version 1."""
    for entry in sorted(_entries(folder)):
        path = os.path.join(folder, entry)
        name, extension = os.path.splitext(entry)
        if extension == ".plan" and _NAME.match(name) and os.path.isfile(path):
            yield (name, "1"), (path, None)
        elif _NAME.match(entry):
            for version in _entries(path):
                plan = os.path.join(path, version, "model.plan")
                if _VERSION.match(version) and os.path.isfile(plan):
                    yield (entry, version), (plan, os.path.join(path, "serve.json"))


def _entries(folder):
    try:
        return os.listdir(folder)
    except OSError:  # no folder, or gone meanwhile
        return []


def _state_of(*paths):
    """What changes with a file's content, as a copy or a rename leaves it."""
    result = []
    for path in paths:
        try:
            status = os.stat(path) if path else None
        except OSError:
            status = None
        result.append(status and (status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(result)


@dataclasses.dataclass
class _Entry:
    """A plan that there is: the state of its files at the last try to load it, what serves it, why it could not be loaded."""

    state: tuple
    served: ServedModel | None = None
    reason: str = ""


class Repository:
    """The models by name and version. refresh() brings them up to the files; requests of before end with the old plan."""

    def __init__(self, arguments, options, metrics):
        self._present, self.options, self._metrics = sources_of(arguments), options, metrics
        self._entries, self._unloaded = {}, set()
        self._refreshing, self._lock = threading.Lock(), threading.Lock()
        self._draining = []
        self.closing = False

    def refresh(self):
        """Loads plans that are new or changed, ends those that are gone. What cannot be loaded leaves the one of before in place."""
        with self._refreshing:
            if self.closing:
                return
            present = {key: value for key, value in self._present().items() if key[0] not in self._unloaded}
            for key in [key for key in self._entries if key not in present]:
                with self._lock:
                    entry = self._entries.pop(key)
                log.info("model %s version %s is gone", *key)
                self._drain(entry.served)
            for key, (path, options) in present.items():
                state, entry = _state_of(path, options), self._entries.get(key)
                if entry is None or entry.state != state:
                    self._load(key, path, options, state, entry)
            self._draining = [thread for thread in self._draining if thread.is_alive()]

    def _load(self, key, path, options, state, before):
        try:
            served, reason = ServedModel(*key, path, self._options_of(options), self._metrics), ""
            log.info("model %s version %s: %s", *key, path)
        except Exception as error:  # a file may hold anything
            served, reason = None, str(error)
            log.error("model %s version %s cannot be loaded: %s", *key, error)
        self._metrics.loads.labels(*key, "refused" if reason else "ok").inc()
        old = before.served if before else None
        with self._lock:
            self._entries[key] = _Entry(state, served or old, reason)
        if served:
            self._drain(old)

    def _options_of(self, path):
        """The server's options, with those of a model's file."""
        if not path or not os.path.exists(path):
            return self.options
        with open(path, encoding="utf-8") as file:
            given = json.load(file)
        if not isinstance(given, dict):
            raise ValueError(f"{path}: an object of options is expected")
        allowed = {field.name for field in dataclasses.fields(Options)}
        for name in given:
            if name not in allowed:
                raise ValueError(f"{path}: {name!r} is no option (allowed: {', '.join(sorted(allowed))})")
        return dataclasses.replace(self.options, **given)

    def _drain(self, served):
        if served:
            thread = threading.Thread(target=served.close, daemon=True)
            thread.start()
            self._draining.append(thread)

    def load(self, name):
        """Loads a model that unload() ended, or that is new, or again one that could not be loaded."""
        with self._refreshing:
            if not any(key[0] == name for key in self._present()):
                raise RequestError(f"there is no plan of a model {shown(name)}", 404)
            self._unloaded.discard(name)
            for key, entry in self._entries.items():
                if key[0] == name and entry.reason:
                    entry.state = ()
        self.refresh()
        with self._lock:
            reasons = [e.reason for key, e in self._entries.items() if key[0] == name and e.reason]
        if reasons:
            raise RequestError(f"model {shown(name)} cannot be loaded: {'; '.join(reasons)}")

    def unload(self, name):
        """Ends a model until load()."""
        with self._lock:
            known = any(key[0] == name for key in self._entries)
        if not known:
            raise RequestError(f"there is no model {shown(name)}", 404)
        self._unloaded.add(name)
        self.refresh()

    def versions(self, name):
        """The versions of a model that are served, smallest first."""
        with self._lock:
            versions = [v for (n, v), entry in self._entries.items() if n == name and entry.served]
        return sorted(versions, key=int)

    def get(self, name, version=""):
        """What serves a version, by default the largest."""
        if self.closing:
            raise RequestError("the server is ending", 503)
        with self._lock:
            if not version:
                ranks = [(entry.served is not None, int(v)) for (n, v), entry in self._entries.items() if n == name]
                version = str(max(ranks, default=("", ""))[1])
            entry = self._entries.get((name, version))
            known = entry or any(n == name for n, _ in self._entries)
        if entry and entry.served:
            return entry.served
        if entry:
            raise RequestError(f"model {shown(name)} version {version} cannot be loaded: {entry.reason}", 503)
        if known:
            raise RequestError(f"model {shown(name)} has no version {shown(version)} that is served", 404)
        raise RequestError(f"there is no model {shown(name)}", 404)

    def submit(self, name, version, arrays, timeout=None):
        """(what serves it, future of the outputs)."""
        while True:
            served = self.get(name, version)
            try:
                return served, served.submit(arrays, timeout)
            except Closed:  # another plan took its place between the two lines
                continue

    def all(self):
        """[(name, version, what serves it or None, why it could not be loaded)]."""
        with self._lock:
            return [(*key, entry.served, entry.reason) for key, entry in sorted(self._entries.items())]

    def ready(self):
        """Whether every plan that there is can be asked."""
        return not self.closing and all(served for _, _, served, _ in self.all())

    def close(self):
        """Ends all models when their requests have been answered."""
        self.closing = True
        with self._refreshing:
            for _, _, served, _ in self.all():
                self._drain(served)
            for thread in self._draining:
                thread.join()
