# SPDX-License-Identifier: Apache-2.0
"""One version of a model behind a queue: requests wait for others to run with, then for an instance that runs them."""

import collections
import concurrent.futures
import logging
import threading
import time
from dataclasses import dataclass, field

import numpy as np

from .._memory import Host
from .._model import difference, load
from . import tensors
from .tensors import RequestError, shown

log = logging.getLogger("tensorwright.serve")


@dataclass
class Options:
    """How a model is served. `batch`: rows of requests that run together, 1 for none; `batch_delay`: seconds that the first of
    them waits for others; `instances`: threads with an execution context each; `queue`: requests that wait at most; `timeout`:
    seconds a request waits at most, 0 for ever."""

    device: str | None = None
    batch: int = 1
    batch_delay: float = 0.002
    instances: int = 1
    queue: int = 128
    timeout: float = 0.0

    def __post_init__(self):
        for name, low, high in (("batch", 1, 2**20), ("instances", 1, 256), ("queue", 1, 2**20)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"{name}: {value!r} is out of range (allowed: {low} to {high})")
        for name, high in (("batch_delay", 60.0), ("timeout", 86400.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= high:
                raise ValueError(f"{name}: {value!r} is out of range (allowed: 0 to {high:g} s)")


class Closed(Exception):
    """The version takes no more requests: another has its place, or the server ends."""


@dataclass
class Job:
    """A request in the queue; `future` gets {output: array}."""

    arrays: dict
    rows: int
    key: tuple
    deadline: float
    arrived: float = field(default_factory=time.monotonic)
    future: concurrent.futures.Future = field(default_factory=concurrent.futures.Future)


class _Instance:
    """A thread's own execution context, and memory in which the inputs of a batch are put together."""

    def __init__(self, model):
        self.model, self._held = model, {}

    def run(self, jobs):
        """{output: array} of all rows of the jobs."""
        inputs = {}
        for name in self.model.inputs:
            parts = [job.arrays[name] for job in jobs]
            first = parts[0]
            shape = first.shape if len(parts) == 1 else (sum(job.rows for job in jobs), *first.shape[1:])
            # Requests come at any address; engines are given aligned ones.
            memory = self._held.get(name)
            size = first.itemsize * int(np.prod(shape, dtype=np.int64))
            if memory is None or memory.nbytes < size:
                memory = self._held[name] = Host().make(size)[1]
            target = memory[:size].view(first.dtype).reshape(shape)
            if len(parts) == 1:
                target[...] = first
            else:
                np.concatenate(parts, out=target)
            inputs[name] = target
        return self.model._execute(inputs)[0]


class ServedModel:
    """A loaded plan. submit() checks a request and puts it into the queue."""

    def __init__(self, name, version, path, options, metrics):
        self.name, self.version, self.path, self.options = name, version, path, options
        self.model = load(path, options.device)
        engine = self.model.engine
        self.dtypes = self.model._dtypes
        self.shapes = {n: tuple(engine.get_tensor_shape(n)) for n in (*self.model.inputs, *self.model.outputs)}
        self._limits = {n: self._limits_of(n) for n in self.model.inputs}
        # Contexts of one engine share no profile of open shapes, so there each instance has an engine.
        own = self.model._most == 1
        others = [load(self.model.plan, options.device) if own else self.model for _ in range(options.instances - 1)]
        self._instances = [_Instance(model) for model in (self.model, *others)]
        self.batch = self._checked_batch(options.batch)
        self.metrics = metrics.of(name, version)
        self._queue, self._closing = collections.deque(), False
        self._turn = threading.Condition()
        self._threads = [
            threading.Thread(target=self._work, args=(instance,), name=f"{name}:{version}", daemon=True)
            for instance in self._instances
        ]
        for thread in self._threads:
            thread.start()

    def _limits_of(self, name):
        """(smallest, largest) shape of an input."""
        shape = self.shapes[name]
        if -1 not in shape:
            return shape, shape
        low, _, high = self.model.engine.get_profile_shape(0, name)
        return tuple(low), tuple(high)

    def _checked_batch(self, wanted):
        """How many rows may run together. Whether the first dimension is a batch nothing in a plan says, so two requests are run
        apart and together."""
        if wanted == 1:
            return 1
        model = self.model
        where = f"model {self.name!r} cannot be served with batch {wanted}:"
        for name, shape in self.shapes.items():
            if model.engine.is_shape_inference_io(name) or not shape or shape[0] != -1:
                raise ValueError(f"{where} tensor {name!r} has the shape {list(shape)}, whose first dimension is not open")
        most = min(high[0] for _, high in self._limits.values())
        least = max(low[0] for low, _ in self._limits.values())
        if most < 2 * least:
            raise ValueError(f"{where} its profile takes {least} to {most} rows")
        inputs = {n: x[:1].repeat(least, 0) for n, x in model.random_inputs(1).items()}
        others = {n: x[-1:].repeat(least, 0) for n, x in model.random_inputs(2).items()}
        both = model._execute({n: np.concatenate([inputs[n], others[n]]) for n in inputs})[0]
        apart = model._execute(inputs)[0], model._execute(others)[0]
        for name, y in both.items():
            expected = [part[name] for part in apart]
            same = y.shape[0] == 2 * least and all(e.shape == (least, *y.shape[1:]) for e in expected)
            if same and y.dtype.kind == "f":
                same = difference(y, np.concatenate(expected))["max_rel"] < 0.05
            elif same:
                same = np.mean(y != np.concatenate(expected)) < 0.1 if y.size else True
            if not same:
                raise ValueError(f"{where} output {name!r} of two requests together is not what it is of each alone")
        return min(wanted, most)

    def submit(self, arrays, timeout=None):
        """A future of {output: array} for arrays by input. timeout: seconds it may wait, when less than the model's own."""
        arrays, rows = self._checked(arrays)
        limits = [t for t in (self.options.timeout, timeout) if t]
        deadline = time.monotonic() + min(limits) if limits else float("inf")
        job = Job(arrays, rows, tuple(a.shape[1:] for a in arrays.values()) if self.batch > 1 else (), deadline)
        with self._turn:
            if self._closing:
                raise Closed
            self.check_queue()
            self._queue.append(job)
            self._turn.notify()
        return job.future

    def check_queue(self):
        """Refuses a request that would find the queue full."""
        if len(self._queue) >= self.options.queue:
            self.metrics.refused()
            raise RequestError(f"the queue of model {self.name!r} is full ({self.options.queue} requests wait)", 503)

    def _checked(self, arrays):
        inputs = self.model.inputs
        for name in arrays:
            if name not in inputs:
                raise RequestError(f"model {self.name!r} has no input {shown(name)} (inputs: {', '.join(inputs)})")
        result, rows = {}, None
        for name in inputs:
            if name not in arrays:
                raise RequestError(f"input {name!r} is missing (inputs: {', '.join(inputs)})")
            array = tensors.narrowed(name, arrays[name], self.dtypes[name])
            low, high = self._limits[name]
            if len(array.shape) != len(low) or not all(a <= n <= b for a, n, b in zip(low, array.shape, high)):
                text = f"input {name!r} has the shape {list(array.shape)}, the model takes {list(self.shapes[name])}"
                raise RequestError(text + (f", from {list(low)} to {list(high)}" if low != high else ""))
            if self.batch > 1:
                if rows not in (None, array.shape[0]):
                    raise RequestError(f"input {name!r} has {array.shape[0]} rows, those before it have {rows}")
                rows = array.shape[0]
            result[name] = array
        return result, 1 if rows is None else rows

    def waiting(self):
        """Requests in the queue."""
        return len(self._queue)

    def close(self):
        """Takes no more requests, and returns when those taken have been answered."""
        with self._turn:
            self._closing = True
            self._turn.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self, instance):
        while jobs := self._take():
            self._run(instance, jobs)
            jobs.clear()

    def _take(self):
        """The jobs to run next, together; None when the model is closed and the queue is empty."""
        with self._turn:
            while True:
                while not self._queue:
                    if self._closing:
                        return None
                    self._turn.wait()
                first, now = self._queue[0], time.monotonic()
                jobs, rows = [first], first.rows
                if self.batch > 1:
                    for job in list(self._queue)[1:]:
                        if job.key == first.key and rows + job.rows <= self.batch:
                            jobs.append(job)
                            rows += job.rows
                wait = min(first.arrived + self.options.batch_delay, first.deadline) - now
                if rows < self.batch and wait > 0 and not self._closing:
                    self._turn.wait(wait)
                    continue
                if len(jobs) == 1:
                    self._queue.popleft()
                else:
                    taken = set(map(id, jobs))
                    self._queue = collections.deque(job for job in self._queue if id(job) not in taken)
                if self._queue:
                    self._turn.notify()
                return jobs

    def _run(self, instance, jobs):
        begin = time.monotonic()
        late = [job for job in jobs if job.deadline < begin]
        jobs = [job for job in jobs if job.deadline >= begin and job.future.set_running_or_notify_cancel()]
        for job in late:
            if job.future.set_running_or_notify_cancel():
                self.metrics.failed()
                job.future.set_exception(RequestError(f"the request waited longer than {job.deadline - job.arrived:.3g} s", 504))
        if not jobs:
            return
        try:
            results = self._split(instance.run(jobs), jobs)
        except Exception as error:  # the thread has to live, whatever an engine does
            if len(jobs) > 1:  # that one request failed is no reason for the others to
                for job in jobs:
                    self._run_alone(instance, job)
                return
            self._fail(jobs[0], error)
            return
        end = time.monotonic()
        self.metrics.ran(sum(job.rows for job in jobs), end - begin)
        for job, result in zip(jobs, results):
            self.metrics.answered(begin - job.arrived, end - job.arrived, job.rows)
            job.arrays.clear()
            job.future.set_result(result)

    def _run_alone(self, instance, job):
        begin = time.monotonic()
        try:
            result = instance.run([job])
        except Exception as error:
            self._fail(job, error)
            return
        end = time.monotonic()
        self.metrics.ran(job.rows, end - begin)
        self.metrics.answered(begin - job.arrived, end - job.arrived, job.rows)
        job.arrays.clear()
        job.future.set_result(result)

    def _fail(self, job, error):
        self.metrics.failed()
        # Values that decide shapes are judged by the engine, and are the client's.
        if isinstance(error, (ValueError, TypeError, OverflowError)):
            error = RequestError(str(error))
        elif not isinstance(error, RequestError):
            log.error("model %s version %s: %s", self.name, self.version, error)
            error = RequestError(f"model {self.name!r}: {error}", 500)
        job.future.set_exception(error)

    @staticmethod
    def _split(outputs, jobs):
        if len(jobs) == 1:
            return [outputs]
        rows = sum(job.rows for job in jobs)
        for name, y in outputs.items():
            if not y.shape or y.shape[0] != rows:
                raise RuntimeError(f"output {name!r} has the shape {list(y.shape)}, {rows} rows ran")
        results, row = [], 0
        for job in jobs:
            results.append({name: y[row : row + job.rows] for name, y in outputs.items()})
            row += job.rows
        return results
