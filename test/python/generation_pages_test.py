# SPDX-License-Identifier: Apache-2.0
"""Generation with caches in pages: blocks that sequences get as they grow, share where they begin alike, wait for and give back."""

import os

import numpy as np
import pytest
import tensorwright
from tensorwright.generation.pages import Blocks

from tiny_decoders import Decoder, folder


@pytest.fixture(scope="module", autouse=True)
def plans(tmp_path_factory):
    """Engines of one test serve others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("plans")))
        yield


@pytest.fixture(scope="module")
def model():
    return Decoder("llama", seed=3)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    return folder(tmp_path_factory.mktemp("models") / "tiny", model, tokenizer=None)


def made(path, **more):
    if os.environ.get("TENSORWRIGHT_DEVICE") == "cuda" and more.get("pages") is None:
        more["pages"] = 20  # in FP32 pages are taken there only when they are asked for
    generator = tensorwright.Generator(path, **{"slots": 4, "capacity": 80, "chunk": 16, **more})
    assert type(generator.runs).__name__ == "Paged" and "caches paged" in repr(generator)
    return generator


def prompts_of(seed, *lengths, tokens=40):
    random = np.random.default_rng(seed)
    return [[int(t) for t in random.integers(0, tokens, n)] for n in lengths]


def test_blocks():
    """Beside a count of our own, at random."""
    random, blocks, held = np.random.default_rng(1), Blocks(12), []
    for _ in range(3000):
        choice = random.random()
        if choice < 0.4:
            block = blocks.take()
            assert (block is None) == (len(set(held)) == 12) and block not in held
            held += [] if block is None else [block]
        elif held and choice < 0.6:
            blocks.share([held[random.integers(len(held))]] * 1)
            held.append(next(b for b in range(12) if blocks.users[b] > held.count(b)))
        elif held:
            blocks.drop([held.pop(random.integers(len(held)))])
        assert blocks.used == len(set(held)) and blocks.users == [held.count(b) for b in range(12)]


def test_beginnings_are_shared(path, model):
    """Sequences at a time that begin alike have the beginning once, until they part within a block."""
    generator = made(path)
    common = prompts_of(2, 40)[0]
    prompts = [common + tail for tail in ([1], [2, 3], [4, 5, 6], [1])]
    first = generator.stream(prompts[0], max_new_tokens=30)
    tokens = [[next(first).token]]
    assert generator.runs.blocks.used == 3
    streams = [first, *(generator.stream(p, max_new_tokens=30) for p in prompts[1:])]
    tokens += [[next(s).token] for s in streams[1:]]
    assert generator.scheduler.reused == 3 * 40 and generator.runs.blocks.used == 2 + 4  # two whole blocks, and one of each
    for got, stream, prompt in zip(tokens, streams, prompts):
        assert got + [p.token for p in stream] == model.greedy(prompt, 30)
    generator.scheduler.idle()
    assert generator.runs.blocks.used == 0


def test_one_prompt_many_draws(path):
    """What is drawn beside others that share the prompt is what is drawn alone."""
    generator, prompt = made(path), prompts_of(3, 37)[0]
    settings = {"max_new_tokens": 20, "temperature": 1.5, "seed": 4}
    together = [r.tokens for r in generator.generate([prompt] * 4, **settings)]
    without = tensorwright.Generator(path, slots=4, capacity=80, chunk=16, pages=0)
    assert type(without.runs).__name__ == "Slots"
    assert together == [r.tokens for r in without.generate([prompt] * 4, **settings)] and len({*map(tuple, together)}) == 4


def test_waits_for_blocks(path, model):
    """Those that there are no blocks for yet wait, in order; none is ended or begun again for another."""
    generator = made(path, pages=6)
    prompts, most = prompts_of(5, 30, 33, 3, 60, 5, 20), []
    streams = [generator.stream(p, max_new_tokens=18) for p in prompts]
    got = [[] for _ in prompts]
    while generator.scheduler_step():
        needs = [-(-(len(s.sequence.prompt) + 18) // 16) for s in generator.scheduler._slots if s.sequence]
        assert sum(needs) <= 6 and generator.runs.blocks.used <= 6
        most.append(len(needs))
    for tokens, stream, prompt in zip(got, streams, prompts):
        assert [p.token for p in stream] == model.greedy(prompt, 18)
    assert max(most) == 2  # 3 + 4 blocks are more than there are


def test_kept_beginnings_give_way(path, model):
    """Blocks of sequences that have ended are kept for those that begin alike, as long as nobody wants them."""
    generator = made(path, pages=6)
    prompts = prompts_of(6, 40, 44, 30, 60)
    for prompt in [*prompts, *prompts[::-1]]:
        assert generator.generate(prompt, max_new_tokens=8).tokens == model.greedy(prompt, 8)
    before = generator.scheduler.reused
    assert generator.generate(prompts[0] + [7], max_new_tokens=8).tokens == model.greedy(prompts[0] + [7], 8)
    assert generator.scheduler.reused - before == 40


@pytest.mark.parametrize("pages", [None, 7])
def test_many_at_random(path, model, pages):
    """Sequences that come, go and are cancelled at any time; all that end are right, and no block is lost."""
    generator, random = made(path, pages=pages), np.random.default_rng(8)
    common, streams = prompts_of(9, 36)[0], []
    for _ in range(80):
        if random.random() < 0.5:
            prompt = (common[: random.integers(1, 37)] if random.random() < 0.6 else []) + prompts_of(int(random.integers(1e6)), random.integers(1, 30))[0]
            count = int(random.integers(1, 81 - len(prompt)))
            streams.append((generator.stream(prompt, max_new_tokens=count), prompt, count))
        if random.random() < 0.15 and streams:
            streams.pop(random.integers(len(streams)))[0].close()
        for _ in range(random.integers(0, 6)):
            generator.scheduler_step()
        users = np.zeros(generator.runs.blocks.count, int)
        for table in generator.runs._tables:
            users[table] += 1
        assert users.tolist() == generator.runs.blocks.users
    for stream, prompt, count in streams:
        assert [p.token for p in stream] == model.greedy(prompt, count)
    generator.scheduler.idle()
    assert generator.runs.blocks.used == 0


def test_beams(path, model):
    """Beams have what they have in common once, and end as those of slots do."""
    generator, prompt = made(path), prompts_of(10, 35)[0]
    without = tensorwright.Generator(path, slots=4, capacity=80, chunk=16, pages=0)
    for count in (2, 4):
        asked = {"max_new_tokens": 24, "num_beams": count, "length_penalty": 0.7}
        got, expected = generator.generate(prompt, **asked), without.generate(prompt, **asked)
        assert got.tokens == expected.tokens and abs(got.score - expected.score) < 1e-4
    assert generator.generate(prompt, max_new_tokens=9).tokens == model.greedy(prompt, 9)


def test_refused(path, model, tmp_path):
    with pytest.raises(ValueError, match="pages: 4 blocks of 16 tokens, a sequence may have 80 tokens"):
        tensorwright.Generator(path, capacity=80, pages=4)
    for wrong in (-1, True, 1.5, 2**25):
        with pytest.raises(ValueError, match="pages: .* is out of range"):
            tensorwright.Generator(path, capacity=80, pages=wrong)
    other = folder(tmp_path / "m", model, data=model.onnx(caches="scatter"), tokenizer=None)
    for _ in range(2):  # also what is known from before
        with pytest.raises(ValueError, match="cannot be in pages: .*otherwise than attention with lengths does"):
            tensorwright.Generator(other, capacity=80, pages=20)
    assert type(tensorwright.Generator(other, capacity=80).runs).__name__ == "Slots"
    with pytest.raises(ValueError, match="capacity of 90 tokens takes blocks for 96, the model was made for 95"):
        short = Decoder("gpt2", positions=95)
        tensorwright.Generator(folder(tmp_path / "short", short, tokenizer=None), capacity=90, pages=20)
