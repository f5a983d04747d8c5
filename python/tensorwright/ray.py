# SPDX-License-Identifier: Apache-2.0
"""Plans and decoder models behind Ray Serve, on one machine or more: replicas on CPUs or GPUs, the requests of each put together by its own
queue.

    from ray import serve
    from tensorwright.ray import application

    serve.run(application("resnet.plan", replicas=4, batch=8))                     # HTTP: POST /v2/models/resnet/infer
    serve.run(application("resnet-new.plan", model="resnet", replicas=4, batch=8))   # takes its place, without a lost request
    serve.run(generation("/models/tiny", replicas=2), route_prefix="/")              # HTTP: POST /v1/chat/completions, as OpenAI's

Needs tensorwright[ray]."""

import asyncio
import os
import re
import tempfile

from ray import serve
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response, StreamingResponse

from .generation import Generator
from .serve import Limits, Options, describe, openai, rest
from .serve.generating import Engine
from .serve.inference import Core, infer
from .serve.metrics import Metrics
from .serve.requests import Request
from .serve.tensors import RequestError

_PATH = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|config|stats|infer))?/?\Z")


class _Replica:
    """One replica: an engine, its queue and its instances."""

    def __init__(self, plan, model, options, limits):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.plan")
            with open(path, "wb") as file:
                file.write(plan)
            self.core = Core([f"{model}={path}"], options, limits)
            self.core.repository.refresh()
        self.model = model
        for _, _, served, reason in self.core.repository.all():
            if not served:
                raise ValueError(reason)

    async def infer(self, arrays):
        """{output: array} of {input: array}, for who holds the deployment's handle."""
        try:
            _, answer = await infer(self.core, self.model, "", Request(dict(arrays)))
        except RequestError as error:  # as what any Python can unpack
            raise ValueError(str(error)) from None
        return {wanted.name: array for wanted, array in answer}

    async def __call__(self, request):
        """KServe's REST of this one model."""
        try:
            return await self._answer(request)
        except RequestError as error:
            return JSONResponse({"error": str(error)}, error.status)

    async def _answer(self, request):
        repository, path = self.core.repository, request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if path in ("/v2/health/live", "/v2/health/ready"):
            return Response(status_code=200 if repository.ready() else 503)
        if path.rstrip("/") == "/v2":
            return JSONResponse(describe.server(False))
        found = _PATH.match(path)
        if not found:
            raise RequestError(f"there is nothing at {path[:80]!r}", 404)
        model, version, what = found.group(1), found.group(2) or "", found.group(3)
        if (request.method == "POST") != (what == "infer"):
            raise RequestError(f"{request.method} is not for {path[:80]!r}", 405)
        if what == "infer":
            return await self._infer(request, model, version)
        if what == "ready":
            repository.get(model, version)
            return Response()
        tell = {None: describe.model, "config": describe.config, "stats": describe.statistics}[what]
        return JSONResponse(tell(repository, model, version))

    async def _infer(self, request, model, version):
        body = await request.body()
        self.core.hold(len(body))
        try:
            end = rest.header_length(request.headers.get(rest.HEADER), body)
            self.core.check_json_size(end)
            outline = await self.core.json.outline(body[:end])
            served, outputs = await infer(self.core, model, version, rest.filled(self.core, outline, memoryview(body)[end:]))
            parts, length = rest.answer(served, model, outline.identity, outputs)
            data = b"".join(parts)
        finally:
            self.core.release(len(body))
        if length is None:
            return Response(data, media_type="application/json")
        return Response(data, media_type="application/octet-stream", headers={rest.HEADER: str(length)})


def application(plan, *, model=None, replicas=1, cpus=1, gpus=0, replicas_per_node=None, limits=None, **options):
    """What serve.run() runs. plan: a file, which is read here and travels to the replicas, or its bytes; model: its name, by default the
    file's. Each replica takes `cpus` (so many threads) and `gpus` of Ray's; options are those of tensorwright.serve.Options."""
    if isinstance(plan, (bytes, bytearray, memoryview)):
        data = bytes(plan)
        if not model:
            raise ValueError("model: a plan of bytes needs a name")
    else:
        with open(plan, "rb") as file:
            data = file.read()
        model = model or os.path.splitext(os.path.basename(plan))[0]
    options = Options(**{"device": "cuda" if gpus else "cpu", **options})
    actor = {"num_cpus": cpus, "num_gpus": gpus}
    if cpus >= 1:
        actor["runtime_env"] = {"env_vars": {"TENSORWRIGHT_NUM_THREADS": str(int(cpus))}}
    deployment = serve.deployment(_Replica).options(
        name=model,
        num_replicas=replicas,
        ray_actor_options=actor,
        # More wait at the proxies, and are told 503 where those are full, too.
        max_ongoing_requests=options.queue,
        max_queued_requests=options.queue,
        **({"max_replicas_per_node": replicas_per_node} if replicas_per_node else {}),
    )
    return deployment.bind(data, model, options, limits or Limits())


class _Generating:
    """One replica of a decoder model."""

    def __init__(self, folder, model, queue, limits, options):
        generator = Generator(folder, **options)
        self.engine = Engine(model or generator.name, generator, queue, Metrics())
        self.limits = limits

    async def __call__(self, request):
        """OpenAI's REST of this one model."""
        path = request.scope["path"].removeprefix(request.scope.get("root_path", "")).rstrip("/")
        try:
            if path in ("/v1/completions", "/v1/chat/completions") and request.method == "POST":
                return await self._completions(request, path.startswith("/v1/chat"))
            name = path.removeprefix("/v1/models").lstrip("/")
            if not path.startswith("/v1/models") or request.method != "GET" or name not in ("", self.engine.name):
                raise RequestError(f"there is nothing at {request.method} {path[:80]!r}", 404)
        except RequestError as error:
            return JSONResponse(openai.error(str(error), error.status), error.status)
        about = openai.model(self.engine.name, self.engine.created)
        return JSONResponse(about if name else {"object": "list", "data": [about]})

    async def _completions(self, request, chat):
        data = await self._body(request)
        engine, loop = self.engine, asyncio.get_running_loop()
        _, asked = await loop.run_in_executor(None, openai.read_request, {engine.name: engine}, data, chat)
        client = request.headers.get("Authorization", "")[:256]
        job, answer = engine.submit(asked.prompts, asked.settings, asked.tried, client), openai.Answer(engine.generator, asked)
        if asked.stream:
            return StreamingResponse(_until_left(answer, job), media_type="text/event-stream")
        try:
            return JSONResponse(await answer.whole(job))
        finally:  # Ray cancels who waits for a client that has gone
            job.cancel()

    async def _body(self, request):
        data = bytearray()
        try:
            async for chunk in request.stream():
                data += chunk
                if len(data) > self.limits.json_bytes:
                    raise RequestError(f"the request has more than {self.limits.json_bytes} bytes of JSON", 413)
        except ClientDisconnect:
            raise RequestError("the client has gone", 400) from None
        return bytes(data)


async def _until_left(answer, job):
    try:
        async for event in openai.events(answer, job):
            yield event
    finally:
        job.cancel()


def generation(folder, *, model=None, replicas=1, cpus=1, gpus=0, replicas_per_node=None, queue=128, limits=None, **options):
    """What serve.run() runs to serve a decoder model by OpenAI's protocol. folder: as of tensorwright.Generator, of whose arguments the options
    are; each node reads it for itself. queue: sequences that wait for a replica's slots at most. The rest: as of application()."""
    Options(queue=queue)  # says what is wrong with it
    options = {"device": "cuda" if gpus else "cpu", **options}
    actor = {"num_cpus": cpus, "num_gpus": gpus}
    if cpus >= 1:
        actor["runtime_env"] = {"env_vars": {"TENSORWRIGHT_NUM_THREADS": str(int(cpus))}}
    places = queue + options.get("slots", 8)
    deployment = serve.deployment(_Generating).options(
        name=model or os.path.basename(os.path.abspath(folder)),
        num_replicas=replicas,
        ray_actor_options=actor,
        max_ongoing_requests=places,
        max_queued_requests=places,
        **({"max_replicas_per_node": replicas_per_node} if replicas_per_node else {}),
    )
    return deployment.bind(os.path.abspath(os.fspath(folder)), model, queue, limits or Limits(), options)
