# SPDX-License-Identifier: Apache-2.0
"""The paths of OpenAI's protocol on the HTTP server: /v1/models, /v1/completions, /v1/chat/completions; and /health, as others have it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
from functools import partial

from aiohttp import web

from . import openai
from .budget import GivenUp
from .generating import Engine
from .inference import Core
from .rest import Body
from .tensors import RequestError, shown

# Prompts become tokens here: templates and tokenizers take as long as they like.
_reading = concurrent.futures.ThreadPoolExecutor(2, "prompts")


def add_routes(app: web.Application, core: Core, engines: dict[str, Engine]) -> None:
    routes = _Routes(core, engines)
    app.add_routes(
        [
            web.get("/v1/models", routes.models),
            web.get("/v1/models/{model}", routes.model),
            web.post("/v1/completions", partial(routes.completions, False)),
            web.post("/v1/chat/completions", partial(routes.completions, True)),
            web.get("/health", routes.health),
        ]
    )


class _Routes:
    def __init__(self, core, engines):
        self.core, self.engines = core, engines

    async def models(self, request):
        return web.json_response({"object": "list", "data": [openai.model(n, e.created) for n, e in self.engines.items()]})

    async def model(self, request):
        name = request.match_info["model"]
        if name not in self.engines:
            return _failure(f"there is no model {shown(name)} that generates", 404)
        return web.json_response(openai.model(name, self.engines[name].created))

    async def health(self, request):
        return _failure("the server is ending", 503) if self.core.repository.closing else web.json_response({"status": "ok"})

    async def completions(self, chat, request):
        try:
            return await self._completions(chat, request)
        except GivenUp:
            raise
        except RequestError as error:
            return _failure(str(error), error.status)

    async def _completions(self, chat, request):
        core = self.core
        if core.repository.closing:
            raise RequestError("the server is ending", 503)
        # Before the body is read: those that would be refused cost little then.
        if self.engines and all(e.waiting >= e.queue for e in self.engines.values()):
            next(iter(self.engines.values())).check_queue()
        with contextlib.closing(Body(core, request, core.limits.json_bytes, core.check_json_size)) as body:
            data = bytes(await body.read())
            engine, asked = await asyncio.get_running_loop().run_in_executor(
                _reading, openai.read_request, self.engines, data, chat
            )
        client = request.headers.get("Authorization", "")[:256] or request.remote or ""
        # Who reads slowly holds no slot, but what has been generated for it.
        held = asked.most_bytes()
        core.budget.take(held)
        try:
            return await self._answer(request, engine, asked, client)
        finally:
            core.budget.give_back(held)

    @staticmethod
    async def _answer(request, engine, asked, client):
        job = engine.submit(asked.prompts, asked.settings, asked.tried, client)
        gone = request.protocol.gone
        gone.add(job.cancel)
        if request.transport is None:  # it left before
            job.cancel()
        try:
            answer = openai.Answer(engine.generator, asked)
            if asked.stream:
                return await _streamed(request, answer, job)
            return web.json_response(await answer.whole(job))
        finally:
            gone.discard(job.cancel)
            job.cancel()


async def _streamed(request, answer, job):
    """Server-sent events, as fast as the client reads."""
    connection = request.protocol
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    events = openai.events(answer, job)
    try:
        first = await anext(events)  # what fails before it is an answer with a status
        await _write(connection, response.prepare(request))
        await _write(connection, response.write(first))
        async for event in events:
            await _write(connection, response.write(event))
        await _write(connection, response.write_eof())
    finally:
        connection.wrote = None
    return response


async def _write(connection, writing):
    connection.wrote = time.monotonic()
    await writing
    connection.wrote = None


def _failure(text, status):
    headers = {"Retry-After": "1"} if status in (429, 503) else {}
    return web.json_response(openai.error(text, status), status=status, headers=headers)
