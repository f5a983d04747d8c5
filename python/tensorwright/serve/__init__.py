# SPDX-License-Identifier: Apache-2.0
"""A server of plans by the KServe protocol, version 2, over HTTP and gRPC, and of decoder models by OpenAI's; needs the packages of
tensorwright[serve]."""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import sys

from aiohttp import web

from . import openai_http
from .budget import listen
from .generating import Engine
from .inference import Core, Limits
from .rest import application, listener
from .served import Options

__all__ = ["Limits", "Options", "Server"]
log = logging.getLogger("tensorwright.serve")


class Server:
    """Serves plans from start() to stop(), inside of an event loop. plans: files, NAME=FILE and folders as the program takes them;
    a port of 0 is any that is free, of None none; `http` and `grpc` are then the ports."""

    def __init__(
        self,
        plans,
        options=None,
        limits=None,
        *,
        host="127.0.0.1",
        port=8000,
        grpc_port=8001,
        poll=1.0,
        shared_memory=False,
        control=False,
        generators=None,
    ):
        """generators: {name: Generator}, for OpenAI's protocol; options.queue is of their sequences, too."""
        self.core = Core(plans, options or Options(), limits or Limits(), shared_memory, control)
        self._host, self._port, self._grpc_port, self._poll = host, port, grpc_port, poll
        self.http = self.grpc = None
        self._generators, self.engines = generators or {}, {}
        self._runner = self._listener = self._rpc = self._watcher = None

    async def start(self):
        """Loads the plans and opens the ports."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.core.repository.refresh)
        self.core.connections.start()
        options = self.core.repository.options
        self.engines = {name: Engine(name, made, options.queue, self.core.metrics) for name, made in self._generators.items()}
        if self._port is not None:
            app = application(self.core)
            openai_http.add_routes(app, self.core, self.engines)
            self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=60.0)
            await self._runner.setup()
            connection = listener(self._runner.server, self.core.connections, loop)
            self._listener = await listen(connection, self._host, self._port)
            self.http = self._listener.sockets[0].getsockname()[1]
        if self._grpc_port is not None:
            from . import rpc

            self._rpc = rpc.Server(self.core)
            self.grpc = await self._rpc.start(self._host, self._grpc_port)
        if self._poll:
            self._watcher = asyncio.ensure_future(self._watch())

    async def _watch(self):
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._poll)
            try:
                await loop.run_in_executor(None, self.core.repository.refresh)
            except Exception:  # the next look may find what this one missed
                log.exception("looking for changed plans")

    async def stop(self):
        """Takes no more requests, ends those that have not arrived as a whole, answers the others, and returns."""
        if self._watcher:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher
        if self._listener:
            self._listener.close()
        if self._rpc and self.grpc:
            self._rpc.refuse()
        self.core.budget.end()
        self.core.connections.finish()
        if self._rpc and self.grpc:
            await self._rpc.stop(60.0)
        if self._runner:
            await self._runner.cleanup()
        self.core.connections.close()
        await self.core.json.close()
        for engine in self.engines.values():
            await asyncio.get_running_loop().run_in_executor(None, engine.close)
        await asyncio.get_running_loop().run_in_executor(None, self.core.repository.close)


def _allow_files(connections):
    """Raises the limit of open files to what so many connections take: three each where they are gRPC's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * connections + 256
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY:
            needed = min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _generators(options):
    """{name: Generator} of the arguments --generate."""
    from ..generation import Generator

    if not options.plans and not options.generate:
        raise ValueError("there is nothing to serve; name plans, or a model by --generate")
    made = {}
    for argument in options.generate:
        name, equals, path = argument.partition("=")
        if not equals or os.path.exists(argument):
            name, path = None, argument
        loaded = Generator(
            path,
            slots=options.slots,
            capacity=options.capacity,
            chunk=options.chunk,
            pages=options.pages,
            precision=options.precision,
            device=options.device,
        )
        name = name or loaded.name
        if name in made:
            raise ValueError(f"{argument}: a model is called {name!r} already; say NAME=FOLDER")
        made[name] = loaded
    return made


def main(options):
    """`tensorwright serve`."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    # Each wrong line of a client would be a traceback; failures of our own are logged by ourselves.
    for library in ("aiohttp.server", "grpc._cython.cygrpc"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    served = Options(
        options.device, options.batch, options.batch_delay / 1000, options.instances, options.queue, options.timeout
    )
    if options.max_request <= 0 or options.max_held < options.max_request or options.poll < 0:
        raise ValueError("--max-request is larger than 0, --max-held not less than it, --poll not less than 0")
    if options.max_json <= 0 or options.max_connections < 1:
        raise ValueError("--max-json is larger than 0, --max-connections at least 1")
    sizes = (int(mib * 2**20) for mib in (options.max_request, options.max_held, options.max_json))
    limits = Limits(*sizes, connections=options.max_connections)
    _allow_files(limits.connections)
    generators = _generators(options)
    server = Server(
        options.plans,
        served,
        limits,
        host=options.host,
        port=options.port,
        grpc_port=None if options.no_grpc else options.grpc_port,
        poll=options.poll,
        shared_memory=options.shared_memory,
        control=options.control,
        generators=generators,
    )

    async def run():
        end = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end.set)
        await server.start()
        models = server.core.repository.all()
        if not options.control and not generators and not any(served for _, _, served, _ in models):
            reasons = "; ".join(f"{name}: {reason}" for name, _, _, reason in models)
            await server.stop()
            raise ValueError(f"no model can be served ({reasons or 'there is no plan'})")
        ports = f"http://{options.host}:{server.http}" + (f" and gRPC on port {server.grpc}" if server.grpc else "")
        # To look for garbage among all objects holds everybody up, for tens of milliseconds. Those that are there now stay, so they are
        # left out, and what has lived for a while, which clients' connections are most of, is looked at a tenth as often.
        # A thread that wants the interpreter's lock waits so long at most; Python's own 5 ms are five answers.
        sys.setswitchinterval(0.0005)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*gc.get_threshold()[:2], 100)
        names = sorted({name for name, _, served, _ in models if served} | set(generators))
        print(f"serving {', '.join(names)} on {ports}", flush=True)
        await end.wait()
        log.info("ending: requests that were taken are answered")
        await server.stop()

    asyncio.run(run())
    return 0
