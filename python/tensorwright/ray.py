# SPDX-License-Identifier: Apache-2.0
"""Plans behind Ray Serve, on one machine or more: replicas on CPUs or GPUs, the requests of each put together by its own queue.

    from ray import serve
    from tensorwright.ray import application

    serve.run(application("resnet.plan", replicas=4, batch=8))                     # HTTP: POST /v2/models/resnet/infer
    serve.run(application("resnet-new.plan", model="resnet", replicas=4, batch=8))   # takes its place, without a lost request

Needs tensorwright[ray]."""

import os
import re
import tempfile

from ray import serve
from starlette.responses import JSONResponse, Response

from .serve import Limits, Options, describe, rest
from .serve.inference import Core, infer
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
