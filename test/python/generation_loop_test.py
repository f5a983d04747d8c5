# SPDX-License-Identifier: Apache-2.0
"""Whole generations inside one enqueue: a decoder, its caches and the choice of tokens in a loop of the network, beside NumPy token by token."""

import numpy as np
import pytest
import tensorrt as trt

from decoding import beam_search, settings, step, word_list
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
    last = net.last(decoder, now[0], at)
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
    """Caches take nothing of the engine's memory: the prompt's keys are put where the loop leaves them, in the outputs."""
    sizes = [greedy_engine(Decoder(7, capacity=capacity), 16).device_memory_size for capacity in (1024, 2048)]
    assert sizes[1] - sizes[0] < np.prod(Decoder(7, capacity=1024).cache_shape(16)) * 4, "one of four"


# ---- Beam search

BEAMS = ["sequences", "lengths", "sums", "done", "ends", "end_lengths", "end_scores"]


def beam_engine(decoder, rows, beams, moved):
    """Ends of a search of `rows` prompts; caches are `moved` to the beams that go on, or stay, and a table says who reads what."""
    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    net = Net(network)
    lists = {"sequences": (rows, beams, decoder.capacity), "lengths": (rows,), "sums": (rows, beams), "done": (rows,), "ends": (rows, beams, decoder.capacity),
             "end_lengths": (rows, beams), "end_scores": (rows, beams), "prompts": (rows,), "floats": (rows, 7), "ints": (rows, 10)}
    inputs = {name: network.add_input(name, trt.float32 if name in ("sums", "end_scores", "floats") else trt.int32, s) for name, s in lists.items()}
    eos, bad = net.const(np.array([5], I32)), net.const(word_list([(2,), (3, 1)], rows, 6))
    zero = net.const(np.zeros(decoder.cache_shape(rows * beams), np.float32))
    caches = net.prompt(decoder, net.reshape(inputs["sequences"], -1, decoder.capacity), [zero] * (2 * len(decoder.layers)), PROMPT)
    places = [] if moved else [net.const(np.zeros((rows, beams, decoder.capacity), I32))]

    loop = network.add_loop()
    state = {name: loop.add_recurrence(t) for name, t in [*((n, inputs[n]) for n in BEAMS), *(("places", t) for t in places)]}
    held = [loop.add_recurrence(t) for t in caches]
    now = {name: s.get_output(0) for name, s in state.items()}
    of_beams = net.reshape(net.op(net.reshape(now["lengths"], -1, 1), net.const(np.zeros((1, beams), I32)), ADD), -1)
    at = net.op(of_beams, net.const(np.array([1], I32)), SUB)
    last = net.last(decoder, net.reshape(now["sequences"], -1, decoder.capacity), at)
    x, after = net.decode(decoder, net.embedded(decoder, last, at), [s.get_output(0) for s in held], at, of_beams, *([] if moved else [now["places"]]))
    logits = net.reshape(net.linear(x, decoder.out), -1, decoder.vocabulary)
    _, parents, *nexts = net.plugin("BeamStep", logits, now["sequences"], now["lengths"], inputs["prompts"], *(now[n] for n in BEAMS[2:]), inputs["floats"],
                                    inputs["ints"], eos, bad, *([] if moved else [now["places"]]), **({} if moved else {"cache_indirection": 1}))
    for s, t in zip(state.values(), nexts):
        s.set_input(1, t)
    if moved:
        first = net.const(beams * np.arange(rows, dtype=I32)[:, None])
        after = [net.rows(cache, net.reshape(net.op(parents, first, ADD), -1)) for cache in after]
    for s, t in zip(held, after):
        s.set_input(1, t)
    loop.add_trip_limit(net.any(net.op(net.const(np.array([1], I32)), now["done"], SUB)), trt.TripLimit.WHILE)
    for name in BEAMS:
        net.mark(f"{name} after", loop.add_loop_output(state[name].get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None
    return trt.Runtime(QUIET).deserialize_cuda_engine(plan)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("rows, beams", [(3, 4), (1, 3), (2, 1)])
def test_a_beam_search_is_one_run(rows, beams, moved):
    decoder = Decoder(11, vocabulary=23, capacity=18)
    decoder.out /= 4  # close enough for beams to cross
    engine, crossed = beam_engine(decoder, rows, beams, moved), 0
    for seed in range(3):
        random = np.random.default_rng([seed, rows, beams])
        lengths = random.integers(1, PROMPT + 1, rows).astype(I32)
        prompts = [list(random.integers(6, decoder.vocabulary, n)) for n in lengths]
        floats, ints = settings(rows, length_penalty=random.choice([0, 1, 2], rows), early=seed, eos=0, max_length=random.choice([0, 9, 14], rows), pad=-7,
                                min_length=random.choice([0, 9], rows), ngram=random.choice([0, 2], rows), repetition=random.choice([1, 1.2], rows))
        sequences = np.zeros((rows, beams, decoder.capacity), I32)
        for n, p in enumerate(prompts):
            sequences[n, :, : len(p)] = p
        sums = np.where(np.arange(beams) == 0, 0, -1e9).astype(np.float32) + np.zeros((rows, 1), np.float32)
        y = run(engine, sequences=sequences, lengths=lengths, prompts=lengths, floats=floats, ints=ints, sums=sums, done=np.zeros(rows, I32),
                ends=np.zeros_like(sequences), end_lengths=np.zeros((rows, beams), I32), end_scores=np.zeros((rows, beams), np.float32))
        assert y["done after"].all()
        for n, p in enumerate(prompts):
            right = beam_search(decoder.logits, p, beams, decoder.capacity, floats[n], ints[n], [5], [(2,), (3, 1)])
            ends = y["end_lengths after"][n]
            assert [list(y["ends after"][n, k, : ends[k]]) for k in range((ends > 0).sum())] == [t for t, _ in right]
            assert np.abs(y["end_scores after"][n, : len(right)] - [score for _, score in right]).max() < 1e-3
            crossed += len({t[len(p)] for t, _ in right}) > 1
    assert crossed or beams == 1, "where all beams come of one, nothing is shown"
