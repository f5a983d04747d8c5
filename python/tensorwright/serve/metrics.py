# SPDX-License-Identifier: Apache-2.0
"""What Prometheus and the statistics calls are told."""

import threading
import time

import prometheus_client as prometheus

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The metrics of a server, by model and version."""

    def __init__(self):
        self.registry = prometheus.CollectorRegistry()
        labels = ["model", "version"]

        def make(kind, name, text, more=(), **options):
            return kind(f"tensorwright_{name}", text, labels + list(more), registry=self.registry, **options)

        self.requests = make(prometheus.Counter, "requests", "Requests by outcome: ok, failed, refused (queue full)", ["outcome"])
        self.rows = make(prometheus.Counter, "rows", "Rows of requests that were answered")
        self.seconds = make(prometheus.Histogram, "request_seconds", "From arrival in the queue to the answer", buckets=_SECONDS)
        self.queued = make(prometheus.Histogram, "queue_seconds", "From arrival to the run", buckets=_SECONDS)
        self.runs = make(prometheus.Histogram, "run_seconds", "A run of the engine", buckets=_SECONDS)
        self.batches = make(prometheus.Histogram, "batch_rows", "Rows of a run", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256))
        self.waiting = make(prometheus.Gauge, "waiting_requests", "Requests in the queue")
        self.loads = make(prometheus.Counter, "loads", "Plans that were loaded or refused", ["outcome"])
        self.first_tokens = self._of_model(prometheus.Histogram, "first_token_seconds", "From a request to its first token", buckets=_SECONDS)
        self.tokens = self._of_model(prometheus.Counter, "generated_tokens", "Tokens that were generated")
        self.prompt_tokens = self._of_model(prometheus.Counter, "prompt_tokens", "Tokens of prompts")
        self.generations = self._of_model(prometheus.Counter, "generations", "Requests for texts by outcome: taken, refused", ["outcome"])
        self.sequences = self._of_model(prometheus.Gauge, "open_sequences", "Sequences that run or wait")
        self._lock, self._models = threading.Lock(), {}

    def _of_model(self, kind, name, text, more=(), **options):
        return kind(f"tensorwright_{name}", text, ["model", *more], registry=self.registry, **options)

    def generation_of(self, name):
        """The metrics of a model that generates."""
        return GenerationMetrics(self, name)

    def of(self, name, version):
        """The metrics of one version; those of a plan that it replaces go on."""
        with self._lock:
            return self._models.setdefault((name, version), ModelMetrics(self, name, version))

    def text(self, waiting):
        """(content type, text) for Prometheus; waiting: [(model, version, requests)]."""
        self.waiting.clear()
        for name, version, count in waiting:
            self.waiting.labels(name, version).set(count)
        return prometheus.CONTENT_TYPE_LATEST, prometheus.generate_latest(self.registry)


class GenerationMetrics:
    """Of one model that generates."""

    def __init__(self, metrics, name):
        self.first, self.tokens = metrics.first_tokens.labels(name), metrics.tokens.labels(name)
        self.prompt_tokens = metrics.prompt_tokens.labels(name)
        self.requests, self.refused = (metrics.generations.labels(name, outcome) for outcome in ("taken", "refused"))
        self.sequences = metrics.sequences.labels(name)


class ModelMetrics:
    """Of one version of a model."""

    def __init__(self, metrics, name, version):
        self._outcomes = {o: metrics.requests.labels(name, version, o) for o in ("ok", "failed", "refused")}
        self._rows, self._seconds = metrics.rows.labels(name, version), metrics.seconds.labels(name, version)
        self._queued, self._runs = metrics.queued.labels(name, version), metrics.runs.labels(name, version)
        self._batches = metrics.batches.labels(name, version)
        self._lock = threading.Lock()
        self.last_ms = self.inferences = self.executions = self.succeeded = self.not_succeeded = 0
        self.success_ns = self.queue_ns = self.run_ns = 0

    def refused(self):
        self._outcomes["refused"].inc()
        with self._lock:
            self.not_succeeded += 1

    def failed(self):
        self._outcomes["failed"].inc()
        with self._lock:
            self.not_succeeded += 1

    def ran(self, rows, seconds):
        """A run of the engine."""
        self._runs.observe(seconds)
        self._batches.observe(rows)
        with self._lock:
            self.executions += 1
            self.run_ns += int(seconds * 1e9)

    def answered(self, queued, seconds, rows):
        """A request, with its seconds in the queue and altogether."""
        self._outcomes["ok"].inc()
        self._rows.inc(rows)
        self._queued.observe(queued)
        self._seconds.observe(seconds)
        with self._lock:
            self.succeeded += 1
            self.inferences += rows
            self.success_ns += int(seconds * 1e9)
            self.queue_ns += int(queued * 1e9)
            self.last_ms = int(time.time() * 1000)

    def statistics(self, name, version):
        """As the statistics call of the protocol's extension gives it."""

        def duration(count, ns):
            return {"count": count, "ns": ns}

        with self._lock:
            return {
                "name": name,
                "version": version,
                "last_inference": self.last_ms,
                "inference_count": self.inferences,
                "execution_count": self.executions,
                "inference_stats": {
                    "success": duration(self.succeeded, self.success_ns),
                    "fail": duration(self.not_succeeded, 0),
                    "queue": duration(self.succeeded, self.queue_ns),
                    "compute_infer": duration(self.executions, self.run_ns),
                },
            }
