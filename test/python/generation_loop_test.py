# SPDX-License-Identifier: Apache-2.0
"""Whole generations inside one enqueue: a decoder, its caches and the choice of tokens in a loop of the network, beside NumPy token by token."""

import numpy as np
import pytest
import tensorrt as trt

from decoding import settings, step
from loop_decoders import ADD, I32, MAX, SUB, Decoder, Net
from small import QUIET, run

PROMPT = 6  # the longest one
NAMES = ["sequences", "lengths", "prompts", "floats", "ints"]


def caches_of(decoder, rows):
    return {f"cache{i}": np.zeros(decoder.cache_shape(rows), np.float32) for i in range(2 * len(decoder.layers))}


def greedy_engine(decoder, rows, open_batch=False):
    """Sequences, ends, tokens of each trip and caches behind a loop that goes on while any sequence does."""
    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    config, net, n = builder.create_builder_config(), Net(network), -1 if open_batch else rows
    shapes = {"sequences": (n, decoder.capacity), "lengths": (n,), "prompts": (n,), "floats": (n, 7), "ints": (n, 10)}
    shapes.update({name: (n, *decoder.cache_shape(1)[1:]) for name in caches_of(decoder, 1)})
    inputs = {name: network.add_input(name, trt.float32 if name == "floats" or "cache" in name else trt.int32, s) for name, s in shapes.items()}
    if open_batch:
        profile = builder.create_optimization_profile()
        for name, shape in shapes.items():
            profile.set_shape(name, (1, *shape[1:]), (rows, *shape[1:]), (2 * rows, *shape[1:]))
        config.add_optimization_profile(profile)
    sequences, lengths, prompts, floats, ints = (inputs[name] for name in NAMES)
    caches = net.prompt(decoder, sequences, [t for name, t in inputs.items() if "cache" in name], PROMPT)

    loop = network.add_loop()
    finished = net.op(lengths, lengths, SUB)
    state = [loop.add_recurrence(t) for t in (sequences, lengths, finished, *caches)]
    now = [s.get_output(0) for s in state]
    at = net.op(net.op(now[1], net.const(np.array([1], I32)), SUB), net.const(np.array([0], I32)), MAX)
    column = network.add_one_hot(at, net.const(np.array([0, 1], I32)), net.reshape(net.const(np.array([decoder.capacity], I32))), -1).get_output(0)
    last = network.add_reduce(net.op(now[0], column, trt.ElementWiseOperation.PROD), trt.ReduceOperation.SUM, 2, False).get_output(0)
    x, after = net.decode(decoder, net.embedded(decoder, last, at), now[3:], at, now[1])
    logits = net.reshape(net.linear(x, decoder.out), -1, decoder.vocabulary)
    token, over, log, chosen, length = net.plugin("GenerateSample", logits, now[0], now[1], prompts, floats, ints)
    for s, t in zip(state, (chosen, length, over, *after)):
        s.set_input(1, t)
    loop.add_trip_limit(net.any(net.op(net.const(np.array([1], I32)), now[2], SUB)), trt.TripLimit.WHILE)
    for name, s in zip(["all", "ends", "over", *(f"{name} after" for name in caches_of(decoder, 1))], state):
        net.mark(name, loop.add_loop_output(s.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    for name, t in ("tokens", token), ("logs", log):
        out = loop.add_loop_output(t, trt.LoopOutput.CONCATENATE)
        out.set_input(1, net.reshape(net.const(np.array([decoder.capacity], I32))))
        net.mark(name, out.get_output(0))
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return trt.Runtime(QUIET).deserialize_cuda_engine(plan)


def generated(decoder, sequences, lengths, floats, ints):
    """What NumPy gives, step by step: sequences, lengths, tokens and their logs."""
    start, over, tokens, logs = lengths, np.zeros(len(lengths)), [], []
    while not over.all():
        logits = np.stack([decoder.logits(s[: max(n, 1)]) for s, n in zip(sequences, lengths)])
        token, over, log, sequences, lengths = step(logits, sequences, lengths, start, floats, ints)
        tokens.append(token)
        logs.append(log)
    return sequences, lengths, np.array(tokens), np.array(logs)


def requests(random, decoder, rows):
    """Rows of different prompts, ends and manners; one may be at its limit, one not in use."""
    lengths = random.integers(1, PROMPT + 1, rows).astype(I32)
    lengths[rows // 2] = 0 if rows > 2 else 1
    floats, ints = settings(rows, temperature=random.choice([0, 0.7, 1], rows), top_k=random.choice([0, 5, 20], rows), top_p=random.choice([0.8, 1], rows),
                            repetition=random.choice([1, 1.3], rows), max_length=random.choice([0, 1, 9, 15], rows), eos=random.integers(0, 6, rows), pad=-7,
                            seed_low=random.integers(0, 2**31), stream=np.arange(rows))
    return random.integers(0, decoder.vocabulary, (rows, decoder.capacity)).astype(I32), lengths, floats, ints


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize("rows", [5, 1])
def test_a_generation_is_one_run(rows, open_batch):
    decoder = Decoder(7)
    engine = greedy_engine(decoder, rows, open_batch)
    context = engine.create_execution_context()
    for seed, count in enumerate([rows, rows, 2 * rows, 1] if open_batch else [rows] * 3):
        random = np.random.default_rng([seed, rows])
        sequences, lengths, floats, ints = requests(random, decoder, count)
        right, ends, tokens, logs = generated(decoder, sequences, lengths, floats, ints)
        y = run(engine, context, sequences=sequences, lengths=lengths, prompts=lengths, floats=floats, ints=ints, **caches_of(decoder, count))
        assert np.array_equal(y["ends"], ends) and y["over"].all()
        assert all(np.array_equal(a[:n], b[:n]) for a, b, n in zip(y["all"], right, ends))
        assert np.array_equal(y["tokens"][: len(tokens)], tokens) and not y["tokens"][len(tokens):].any()
        assert np.abs(y["logs"][: len(logs)] - logs).max() < 1e-4
        assert len(tokens) > 3 or count == 1, "nothing is shown where nothing goes on"


def test_caches_have_one_place_in_the_loop():
    """What a longer cache takes in the engine's memory: where the prompt's keys are put. The loop's own is that of the outputs."""
    sizes = [greedy_engine(Decoder(7, capacity=capacity), 4).device_memory_size for capacity in (1024, 2048)]
    caches = 4 * np.prod(Decoder(7, capacity=1024).cache_shape(4)) * 4
    assert caches <= sizes[1] - sizes[0] < 1.2 * caches
