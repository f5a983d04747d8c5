# SPDX-License-Identifier: Apache-2.0
"""GenerateSample and BeamStep beside NumPy: single steps, whole generations on the host and in a loop of the network."""

import numpy as np
import pytest
import tensorrt as trt

import decoding
from decoding import beam_search, settings, step, word_list
from onnx_models import Model
from small import QUIET, Tensors, run
from standard_plugins import Lines, check, close, engine_of, make, outputs_of

I32 = np.int32


def rows_of(random, rows, tokens, capacity):
    """(logits, sequences, lengths, prompts) of rows that go on and rows that do not."""
    logits = (3 * random.standard_normal((rows, tokens))).astype(np.float32)
    lengths = random.integers(0, capacity + 1, rows).astype(I32)
    return logits, random.integers(0, tokens, (rows, capacity)).astype(I32), lengths, random.integers(0, lengths + 1).astype(I32)


def mixed(random, rows):
    """Requests that have nothing in common."""
    return settings(
        rows, temperature=random.choice([0, 0.5, 0.9, 1.5, 30], rows), top_p=random.choice([0, 0.3, 0.9, 1], rows), min_p=random.choice([0, 0.05, 1], rows),
        repetition=random.choice([0.7, 1, 1.3], rows), presence=random.choice([0, 0.4, -0.2], rows), frequency=random.choice([0, 0.3], rows),
        top_k=random.choice([0, 1, 5, 40], rows), min_length=random.choice([0, 6], rows), max_length=random.choice([0, 9], rows),
        ngram=random.choice([0, 1, 2, 3], rows), seed_low=random.integers(-2**31, 2**31, rows), seed_high=random.integers(-2**31, 2**31, rows),
        stream=random.integers(0, 2**31, rows), eos=random.integers(-1, 3, rows), pad=random.integers(-1, 9, rows))


def test_the_random_numbers_are_those_of_philox():
    assert decoding.philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert decoding.philox([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    below = np.random.default_rng(0).uniform(0, 25, 1000).astype(np.float32)
    assert max(abs(decoding.weight(b) / 2**40 / np.exp(-float(b)) - 1) * (1 if b < 12 else 0) for b in below) < 4e-7 and decoding.weight(0) == 2**40


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rows, tokens, capacity", [(16, 33, 12), (5, 1000, 30), (40, 4, 7)])
def test_samples(rows, tokens, capacity, seed):
    random = np.random.default_rng(seed)
    bad, stop, eos = [(3,), (1, 2), (0, 1, 2)], [(2, 3), (1,)], [-1, 2]
    arrays = [*rows_of(random, rows, tokens, capacity), *mixed(random, rows), np.array(eos, I32), word_list(bad, rows, 8), word_list(stop, rows, 5)]
    floats = arrays[4]  # as FP16 tensors have them
    floats[:] = floats.astype(np.float16)
    check(make("GenerateSample"), arrays, lambda *a: step(a[0], *arrays[1:4], a[4].astype(np.float32), arrays[5], eos, bad, stop), tolerance=1e-5)
    short = arrays[: 6 + seed % 2]
    check(make("GenerateSample"), short, lambda *a: step(a[0], *arrays[1:4], a[4].astype(np.float32), arrays[5], eos if seed % 2 else ()), half=False, tolerance=1e-5)


def generator(rows, tokens, capacity, plugin="GenerateSample"):
    arrays = [np.zeros((rows, tokens), np.float32), np.zeros((rows, capacity), I32), np.zeros(rows, I32), np.zeros(rows, I32), *settings(rows)]
    return engine_of(make(plugin), arrays, open_shapes=True)


def generated(engine, table, prompts, capacity, floats, ints, steps):
    """Tokens of rows whose logits are those of their last token, [rows, steps]."""
    rows = len(prompts)
    sequences, lengths = np.zeros((rows, capacity), I32), np.array([len(p) for p in prompts], I32)
    for n, p in enumerate(prompts):
        sequences[n, : len(p)] = p
    start, tokens = lengths, []
    for _ in range(steps):
        last = sequences[np.arange(rows), np.maximum(lengths - 1, 0)]
        token, _, _, sequences, lengths = outputs_of(engine, [table[last], sequences, lengths, start, floats, ints])
        tokens.append(token)
    return np.stack(tokens, 1)


def test_a_batch_changes_nothing():
    random = np.random.default_rng(3)
    rows, tokens, capacity, steps = 12, 50, 40, 20
    engine, table = generator(rows, tokens, capacity), (2 * random.standard_normal((tokens, tokens))).astype(np.float32)
    prompts = [list(random.integers(0, tokens, random.integers(1, 9))) for _ in range(rows)]
    floats, ints = mixed(random, rows)
    together = generated(engine, table, prompts, capacity, floats, ints, steps)
    for n in range(rows):
        assert (generated(engine, table, prompts[n : n + 1], capacity, floats[n : n + 1], ints[n : n + 1], steps) == together[n]).all()
    order = random.permutation(rows)[:7]
    other = generated(engine, table, [prompts[n] for n in order], capacity, floats[order], ints[order], steps)
    assert (other == together[order]).all()
    ints[:, decoding.SEED_LOW] += 1
    assert (generated(engine, table, prompts, capacity, floats, ints, steps) != together).any()


@pytest.mark.parametrize("what", ["stream", "seed_low", "length"])
@pytest.mark.parametrize("tokens, values", [(16, {}), (16, {"temperature": 0.8, "top_k": 12, "top_p": 0.9}), (40, {"temperature": 1.7, "min_p": 0.1})])
def test_draws_are_as_often_as_they_should_be(what, tokens, values):
    draws, random = 20000, np.random.default_rng(11)
    logits = np.repeat((1.5 * random.standard_normal((1, tokens))).astype(np.float32), draws, 0)
    count = np.arange(draws, dtype=I32)
    floats, ints = settings(draws, **values, **({} if what == "length" else {what: count}))
    # Lengths: 100 of them, with 200 seeds.
    lengths = 1 + count % 100 if what == "length" else np.ones(draws, I32)
    if what == "length":
        ints[:, decoding.SEED_HIGH] = count // 100
    arrays = [logits, np.zeros((draws, 101), I32), lengths.astype(I32), lengths.astype(I32), floats, ints]
    token = outputs_of(engine_of(make("GenerateSample"), arrays), arrays)[0]
    x, ids = decoding.allowed(logits[0], floats[0], ints[0])
    p = np.exp(x[ids].astype(np.float64) - x.max())
    counts = np.array([(token == i).sum() for i in ids])
    assert counts.sum() == draws
    assert decoding.chi_square_p(counts, draws * p / p.sum()) > 0.01


def beams_of(engine, arrays, table, steps):
    """Runs BeamStep until all rows are done; the outputs of the last step."""
    logits, sequences, lengths, prompts, sums, done, ends, end_lengths, end_scores, floats, ints, *rest = arrays
    for _ in range(steps):
        n, b, _ = sequences.shape
        last = np.take_along_axis(sequences, np.broadcast_to(np.maximum(lengths - 1, 0)[:, None, None], (n, b, 1)), 2)[..., 0]
        state = [table[lengths[:, None], last].reshape(n * b, -1), sequences, lengths, prompts, sums, done, ends, end_lengths, end_scores, floats, ints, *rest]
        before = sequences
        tokens, parents, sequences, lengths, sums, done, ends, end_lengths, end_scores, *places = outputs_of(engine, state)
        for r in np.flatnonzero((lengths > state[2]) & (done == 0)):  # beams go on from their parents
            assert (sequences[r, :, : state[2][r]] == before[r, parents[r], : state[2][r]]).all() and (sequences[r, :, state[2][r]] == tokens[r]).all()
        if places:
            rest[-1] = places[0]
        if done.all():
            break
    assert done.all()
    return ends, end_lengths, end_scores, rest


@pytest.mark.parametrize("early", [0, 1, 2])
@pytest.mark.parametrize("penalty", [1.0, 0.0, 2.0, -0.5])
@pytest.mark.parametrize("beams", [4, 1, 3])
def test_beams(early, penalty, beams):
    random = np.random.default_rng(17 * early + beams)
    rows, tokens, capacity = 5, 11, 14
    table = (2 * random.standard_normal((capacity + 1, tokens, tokens))).astype(np.float32)  # by length: no two ways have the same sum
    floats, ints = settings(rows, length_penalty=penalty, early=early, eos=0, max_length=[0, 9, 12, 0, 4], pad=-7, min_length=[0, 0, 7, 0, 0],
                            ngram=[0, 2, 0, 1, 0], repetition=[1, 1, 1.2, 1, 1])
    eos, bad = [5], [(2,), (3, 1)]
    prompts = [list(random.integers(1, tokens, random.integers(1, 4))) for _ in range(rows)]
    sequences = np.zeros((rows, beams, capacity), I32)
    for n, p in enumerate(prompts):
        sequences[n, :, : len(p)] = p
    lengths = np.array([len(p) for p in prompts], I32)
    sums = np.full((rows, beams), -np.inf if early else -1e9, np.float32)
    sums[:, 0] = 0
    nothing = [np.zeros(rows, I32), np.zeros_like(sequences), np.zeros((rows, beams), I32), np.zeros((rows, beams), np.float32)]
    arrays = [np.zeros((rows * beams, tokens), np.float32), sequences, lengths, lengths, sums, *nothing, floats, ints, np.array(eos, I32), word_list(bad, rows, 6)]
    engine = engine_of(make("BeamStep"), arrays)
    ends, end_lengths, end_scores, _ = beams_of(engine, arrays, table, capacity)
    for n, p in enumerate(prompts):
        right = beam_search(lambda t: table[len(t), t[-1]], p, beams, capacity, floats[n], ints[n], eos, bad)
        assert len(right) == (end_lengths[n] > 0).sum()
        for k, (t, score) in enumerate(right):
            assert list(ends[n, k, : end_lengths[n, k]]) == t
            assert abs(end_scores[n, k] - score) < 2e-5 * max(1, abs(score))


def test_places_of_a_cache():
    """What beams read through the table is what they would have, had the cache been moved."""
    random = np.random.default_rng(5)
    rows, beams, tokens, capacity = 3, 4, 20, 10
    floats, ints = settings(rows)
    places = np.zeros((rows, beams, capacity), I32)
    shape = (rows, beams)
    state = [np.zeros((rows * beams, tokens), np.float32), np.zeros((*shape, capacity), I32), np.full(rows, 2, I32), np.full(rows, 2, I32),
             np.where(np.arange(beams) == 0, 0, -1e9).astype(np.float32) + np.zeros(shape, np.float32), np.zeros(rows, I32),
             np.zeros((*shape, capacity), I32), np.zeros(shape, I32), np.zeros(shape, np.float32), floats, ints, np.array([-1], I32), word_list([], rows, 1), places]
    engine = engine_of(make("BeamStep", cache_indirection=1), state)
    cache = np.full((*shape, capacity), -1)  # who wrote what: its own token
    state[1][:, :, :2] = cache[:, :, :2] = 7
    for t in range(2, capacity):
        state[0] = (3 * random.standard_normal((rows * beams, tokens))).astype(np.float32)
        tokens_, _, sequences, lengths, sums, done, ends, end_lengths, end_scores, places = outputs_of(engine, state)
        cache[:, :, t] = tokens_
        for n in range(rows):
            for j in range(beams):
                assert [cache[n, places[n, j, i], i] for i in range(t + 1)] == list(sequences[n, j, : t + 1])
        state[1:9] = sequences, lengths, state[3], sums, done, ends, end_lengths, end_scores
        state[-1] = places
    assert done.all()


def test_a_loop_generates_all_in_one_run():
    """Embedding, product, GenerateSample in a loop while any sequence goes on: what the steps on the host give."""
    random = np.random.default_rng(23)
    rows, tokens, width, capacity = 6, 40, 16, 24
    table, out = random.standard_normal((tokens, width)).astype(np.float32), random.standard_normal((width, tokens)).astype(np.float32)
    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    names = ["sequences", "lengths", "prompts", "floats", "ints"]
    shapes = [(rows, capacity), (rows,), (rows,), (rows, 7), (rows, 10)]
    sequences, lengths, prompts, floats, ints = (network.add_input(n, trt.float32 if n == "floats" else trt.int32, s) for n, s in zip(names, shapes))

    def constant(array):
        array = np.ascontiguousarray(array)
        return network.add_constant(array.shape, array).get_output(0)

    def elementwise(a, b, operation):
        return network.add_elementwise(a, b, operation).get_output(0)

    one, zero = constant(np.ones(rows, I32)), constant(np.zeros(rows, I32))
    places = constant(np.arange(rows, dtype=I32))
    loop = network.add_loop()
    state = [loop.add_recurrence(t) for t in (sequences, lengths, zero)]
    now = [s.get_output(0) for s in state]
    index = network.add_shuffle(elementwise(now[1], one, trt.ElementWiseOperation.SUB))
    index.reshape_dims = (rows, 1)
    where = network.add_shuffle(places)
    where.reshape_dims = (rows, 1)
    pairs = network.add_concatenation([where.get_output(0), index.get_output(0)])
    pairs.axis = 1
    last = network.add_gather_v2(now[0], pairs.get_output(0), trt.GatherMode.ND).get_output(0)
    hidden = network.add_gather(constant(table), last, 0).get_output(0)
    logits = network.add_matrix_multiply(hidden, trt.MatrixOperation.NONE, constant(out), trt.MatrixOperation.NONE).get_output(0)
    sample = network.add_plugin_v2([logits, now[0], now[1], prompts, floats, ints], make("GenerateSample"))
    for s, o in zip(state, (3, 4, 1)):
        s.set_input(1, sample.get_output(o))
    unfinished = network.add_reduce(elementwise(one, now[2], trt.ElementWiseOperation.SUB), trt.ReduceOperation.MAX, 1, False).get_output(0)
    unfinished = network.add_identity(unfinished)
    unfinished.set_output_type(0, trt.bool)
    loop.add_trip_limit(unfinished.get_output(0), trt.TripLimit.WHILE)
    for name, s in zip(("all", "ends"), state):
        t = loop.add_loop_output(s.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
        t.name = name
        network.mark_output(t)
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(plan)

    host = generator(rows, tokens, capacity)
    for seed in range(3):
        given = np.random.default_rng(seed)
        feed_floats, feed_ints = settings(rows, temperature=[0, 1, 1, 0.7, 2, 1], top_k=[0, 0, 5, 0, 9, 0], top_p=[1, 1, 1, 0.8, 1, 1], repetition=[1.5, 1, 1, 1, 1, 1],
                                          seed_low=seed, stream=range(rows), eos=3, max_length=[0, 9, 0, 15, 0, 1])
        start = np.array([1, 3, 2, 5, 0, 1], I32)  # one is not in use, one is at its limit
        prompt = given.integers(4, tokens, (rows, capacity)).astype(I32)
        y = run(engine, sequences=prompt, lengths=start, prompts=start, floats=feed_floats, ints=feed_ints)
        right, ends, over = prompt, start, np.zeros(rows)
        while not over.all():
            last = right[np.arange(rows), np.maximum(ends - 1, 0)]
            _, over, _, right, ends = outputs_of(host, [table[last] @ out, right, ends, start, feed_floats, feed_ints])
        assert (y["all"] == right).all() and (y["ends"] == ends).all() and (ends[:4] > start[:4]).all() and ends[4] == 0


def test_state_may_stay_where_it_is():
    """Sequences and lengths whose outputs are given the memory of the inputs: each run is a step."""
    random = np.random.default_rng(29)
    rows, tokens, capacity = 4, 30, 12
    arrays = [(2 * random.standard_normal((rows, tokens))).astype(np.float32), random.integers(0, tokens, (rows, capacity)).astype(I32), np.array([1, 3, 0, 10], I32),
              np.ones(rows, I32), *settings(rows, eos=2, stream=range(rows), repetition=1.2)]
    engine = engine_of(make("GenerateSample"), arrays)
    context, tensors = engine.create_execution_context(), Tensors()
    addresses = [tensors.given(f"x{i}", a.copy()) for i, a in enumerate(arrays)]
    for i, address in enumerate(addresses):
        assert context.set_tensor_address(f"x{i}", address)
    for i, shape in enumerate([(rows,), (rows,), (rows,), (rows, capacity), (rows,)]):
        assert context.set_tensor_address(f"y{i}", addresses[i - 2] if i > 2 else tensors.room(f"y{i}", shape, np.float32 if i == 2 else I32))
    for _ in range(4):
        assert context.execute_async_v3(0)
        token, over, log, arrays[1], arrays[2] = step(*arrays)
        y = tensors.results()
        close([y["y0"], y["y1"], y["y2"]], [token, over, log], 1e-5)


def test_from_onnx():
    random = np.random.default_rng(2)
    arrays = [*rows_of(random, 4, 30, 10), *mixed(random, 4)]
    model = Model()
    names = [model.fed(f"x{i}", a) for i, a in enumerate(arrays)]
    ys = [f"y{i}" for i in range(5)]
    model.node("GenerateSample", names, ys, domain="any.domain")
    shapes = [(I32, [4]), (I32, [4]), (np.float32, [4]), (I32, [4, 10]), (I32, [4])]
    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, QUIET)
    assert parser.parse(model.bytes(**dict(zip(ys, shapes)))), [parser.get_error(i).desc() for i in range(parser.num_errors)]
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    y = run(trt.Runtime(QUIET).deserialize_cuda_engine(plan), **model.feed)
    close([y[n] for n in ys], step(*arrays), 1e-5)


@pytest.mark.parametrize("place, shape, says", [(1, (4,), "sequences"), (2, (5,), "lengths"), (3, (4, 1), "prompts"), (5, (3, 9), "numbers"), (6, (2, 2), "ends"), (7, (4, 3, 5), "bad words")])
def test_refusals(place, shape, says):
    random = np.random.default_rng(0)
    arrays = [*rows_of(random, 4, 30, 10), *settings(4), np.zeros(2, I32), word_list([], 4, 3), word_list([], 4, 3)]
    arrays[place] = np.zeros(shape, arrays[place].dtype)
    lines = Lines()
    assert engine_of(make("GenerateSample"), arrays, logger=lines) is None
    assert any(says in m for s, m in lines.lines if s <= trt.ILogger.ERROR), lines.lines
