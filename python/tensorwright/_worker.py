# SPDX-License-Identifier: Apache-2.0
"""Engines as processes that speak lines: each in a session of its own, stopped while another one has its turn. The drivers of bench/
use this file by itself, so it imports nothing of the package."""
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

PEERS = ("onnxruntime", "openvino")  # those that run ONNX files
PEER_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_peer_worker.py")


class EngineError(Exception):
    pass


def _die_with_parent():
    """A stopped process would outlive a killed parent for ever: nobody would wake it to see its input end."""
    set_parent_death_signal = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


class Worker:
    """One process that speaks lines. It runs only between resume() and pause(): a peer's pool may spin after its run,
    which would slow the next engine's turn."""

    def __init__(self, name, command, env=None, timeout=600.0):
        self.name, self.timeout, self.text = name, timeout, b""
        environment = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "TENSORWRIGHT_NUM_THREADS")}
        self.log = open(os.devnull, "wb") if name in (*PEERS, "torch") else None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        env={**environment, **(env or {})}, start_new_session=True,
                                        preexec_fn=_die_with_parent)

    def ready(self):
        return json.loads(self.reply("ready"))

    def ask(self, line, expected):
        self._send(line)
        return self.reply(expected)

    def run(self, count):
        return [float(t) for t in self.ask(f"run {count}", "times").split()]

    def go_first(self):
        """From here on the process's threads run before those of other work."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(1))

    def count_cpu_time(self):
        """From here on a run's time is what its process took of the CPU: of any use for one thread alone."""
        self.ask("clock cpu", "clock")

    def turn(self, warm_up, count, meter=None):
        """The times of `count` runs behind `warm_up` ones that do not count. The meter (_power.py) takes their energy."""
        self.resume()
        if warm_up:
            self.run(warm_up)
        if meter:
            meter.begin()
        times = self.run(count)
        if meter:
            meter.end(count)
        self.pause()
        return times

    def memory_kib(self):
        """The most that the process has had of the host's memory."""
        return int(self.ask("memory", "memory"))

    def pause(self):
        self._signal(signal.SIGSTOP)

    def resume(self):
        self._signal(signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            self._signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream:
                try:
                    stream.close()
                except OSError:
                    pass  # a line that a dead process will not read

    def _signal(self, number):
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def _send(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise EngineError(f"{self.name}: the process has ended ({error})") from error

    def reply(self, expected):
        deadline = time.monotonic() + self.timeout
        while True:
            line, newline, rest = self.text.partition(b"\n")
            if newline:
                self.text = rest
                word, _, values = line.decode(errors="replace").partition(" ")
                if word == expected:
                    return values
                continue  # what a library prints
            if not select.select([self.process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise EngineError(f"{self.name}: no answer within {self.timeout:.0f} s")
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise EngineError(f"{self.name}: the process ended with status {self.process.wait()}")
            self.text += chunk


def pairs(inputs):
    return [f"{name}={path}" for name, path in inputs.items()]


def shape_pairs(shapes):
    return [f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes.items()]


def start_peer(name, model, threads, inputs, shapes, timeout, environment=None):
    command = [sys.executable, PEER_WORKER, name, model, str(threads), *pairs(inputs)]
    for pair in shape_pairs(shapes):
        command += ["--shape", pair]
    return Worker(name, command, environment, timeout)
