# SPDX-License-Identifier: Apache-2.0
"""What the plugins of decoding mean (docs/plugins.md), in NumPy: processors, draws, beam search. Shares nothing with the engine."""

import math
import os

import numpy as np

# Whether a Generator in FP32 has its caches in pages where nobody says so: not on a GPU.
PAGED_BY_ITSELF = os.environ.get("TENSORWRIGHT_DEVICE") != "cuda"

TEMPERATURE, TOP_P, MIN_P, REPETITION, PRESENCE, FREQUENCY, LENGTH_PENALTY = range(7)
TOP_K, MIN_LENGTH, MAX_LENGTH, NGRAM, SEED_LOW, SEED_HIGH, STREAM, EOS, PAD, EARLY = range(10)


def settings(rows, **values):
    """(floats, ints) of so many requests; a value is for all of them, or a list of one for each."""
    floats = np.zeros((rows, 7), np.float32)
    floats[:, [TEMPERATURE, TOP_P, REPETITION, LENGTH_PENALTY]] = 1
    ints = np.zeros((rows, 10), np.int32)
    ints[:, EOS] = -1
    for name, value in values.items():
        column = globals()[name.upper()]
        (floats if name.upper() in ("TEMPERATURE", "TOP_P", "MIN_P", "REPETITION", "PRESENCE", "FREQUENCY", "LENGTH_PENALTY") else ints)[:, column] = value
    return floats, ints


def word_list(words, rows, room):
    """[rows, 2, room] as the plugins take lists of words."""
    ids = [t for w in words for t in w]
    ends = list(np.cumsum([len(w) for w in words]))
    one = np.full((2, room), -1, np.int32)
    one[0, : len(ids)], one[1, : len(ends)] = ids, ends
    return np.repeat(one[None], rows, 0)


def log_softmax(x):
    x = x.astype(np.float64)
    m = x.max()
    return x - m - np.log(np.exp(x - m).sum())


def processed(x, tokens, prompt, floats, ints, eos=(), bad=()):
    """Scores of the tokens that may come behind a list of them; float32 as the engine rounds."""
    y = x.astype(np.float32).copy()
    r, p, f = (np.float32(floats[c]) for c in (REPETITION, PRESENCE, FREQUENCY))
    for t in set(tokens):
        if 0 <= t < len(y):
            y[t] = y[t] / r if y[t] > 0 else y[t] * r
            count = tokens[prompt:].count(t)
            if count:
                y[t] = np.float32(y[t] - p) - np.float32(f * np.float32(count))
    banned, n = set(), int(ints[NGRAM])
    if n > 0:
        grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        banned |= {g[-1] for g in grams if list(g[:-1]) == tokens[len(tokens) - n + 1 :]}
    banned |= {w[-1] for w in bad if tokens[len(tokens) - len(w) + 1 :] == list(w[:-1]) or len(w) == 1}
    if len(tokens) < ints[MIN_LENGTH]:
        banned |= {int(ints[EOS]), *eos}
    for t in banned:
        if 0 <= t < len(y):
            y[t] = -np.inf
    return y


def allowed(y, floats, ints):
    """(x, ids): scores by temperature, and the tokens that are left, best first."""
    with np.errstate(over="ignore"):
        x = (y / np.float32(floats[TEMPERATURE])).astype(np.float32)
    ids = [int(i) for i in np.lexsort((np.arange(len(x)), -x)) if x[i] > -np.inf]
    if 0 < ints[TOP_K] < len(ids):
        ids = [i for i in ids if x[i] >= x[ids[ints[TOP_K] - 1]]]
    if floats[TOP_P] < 1:
        total = sum(weight(x[ids[0]] - x[i]) for i in ids)
        share, some, kept = math.ceil(float(floats[TOP_P]) * float(total)), 0, []
        for i in ids:
            if kept and some >= share:
                break
            kept.append(i)
            some += weight(x[ids[0]] - x[i])
        ids = kept
    return x, [i for i in ids if weight(x[ids[0]] - x[i]) >= float(floats[MIN_P]) * 2**40]


def weight(below):
    """exp(-below) in units of 2^-40, as the rule says: in integers."""
    below = np.float32(below)
    if not below < 32:
        return 0
    t = int(float(below) * 2**26) * 3098164009 >> 32
    f, h = (t % 2**25) << 7, 0
    for c in (4073454, 39582418, 237543469, 1031582456, 2977031600):
        h = f * (c - h) >> 32
    return (2**32 - h) << 8 >> (t >> 25)


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def sampled(y, length, floats, ints):
    """The token; None where none can come."""
    if not (y > -np.inf).any():
        return None
    if floats[TEMPERATURE] <= 0:
        return int(y.argmax())
    x, ids = allowed(y, floats, ints)
    unsigned = [int(v) & 0xFFFFFFFF for v in (length, ints[STREAM], ints[SEED_LOW], ints[SEED_HIGH])]
    c = philox([*unsigned[:2], 0, 0], unsigned[2:])
    weights = {i: weight(x[ids[0]] - x[i]) for i in ids}
    target = (c[1] << 32 | c[0]) * sum(weights.values()) >> 64
    for i in sorted(ids):
        target -= weights[i]
        if target < 0:
            return i


def is_over(tokens, prompt, capacity, ints, eos, stop):
    limit = min(int(ints[MAX_LENGTH]) if ints[MAX_LENGTH] > 0 else capacity, capacity)
    if not tokens or len(tokens) >= limit:
        return True
    ends = {int(ints[EOS]), *eos} - {-1}
    return len(tokens) > prompt and (tokens[-1] in ends or any(tokens[-len(w) :] == list(w) for w in stop))


def step(logits, sequences, lengths, prompts, floats, ints, eos=(), bad=(), stop=()):
    """The outputs of GenerateSample."""
    sequences, rows = sequences.copy(), []
    for n, x in enumerate(logits.astype(np.float32)):
        tokens, capacity = [int(t) for t in sequences[n, : lengths[n]]], sequences.shape[1]
        token, over, log = int(ints[n, PAD]), is_over(tokens, prompts[n], capacity, ints[n], eos, stop), 0.0
        if not over:
            chosen = sampled(processed(x, tokens, prompts[n], floats[n], ints[n], eos, bad), len(tokens), floats[n], ints[n])
            over, log = True, -np.inf
            if chosen is not None:
                token, log = chosen, log_softmax(x)[chosen]
                sequences[n, len(tokens)] = token
                tokens.append(token)
                over = is_over(tokens, prompts[n], capacity, ints[n], eos, stop)
        rows.append((token, over, log, len(tokens)))
    token, over, log, length = map(np.array, zip(*rows))
    return [token, over, log, sequences, length]


def beam_search(next_logits, prompt, beams, capacity, floats, ints, eos=(), bad=()):
    """[(tokens, score)] of the sequences that one prompt ends in, best first, as lists of hypotheses."""
    live, done = [(list(prompt), 0.0)], []
    penalty, limit = float(floats[LENGTH_PENALTY]), min(int(ints[MAX_LENGTH]) or capacity, capacity)
    ends = {int(ints[EOS]), *eos} - {-1}

    def add(tokens, total):
        done.append((tokens, total / (len(tokens) - len(prompt)) ** penalty))
        if len(done) > beams:
            done.remove(min(done, key=lambda d: d[1]))

    while True:
        options = []
        for beam, (tokens, total) in enumerate(live):
            y = processed(log_softmax(next_logits(tokens)), tokens, len(prompt), floats, ints, eos, bad)
            options += [(-float(np.float32(np.float32(total) + y[t])), beam, t) for t in range(len(y)) if y[t] > -np.inf]
        options = sorted(options)[: 2 * beams]
        fresh = []
        for rank, (minus, beam, t) in enumerate(options):
            if t in ends:
                if rank < beams:
                    add(live[beam][0] + [t], -minus)
            elif len(fresh) < beams:
                fresh.append((live[beam][0] + [t], -minus))
        live = fresh
        if not live:
            break
        length = len(live[0][0])
        if len(done) == beams:
            reach = limit if ints[EARLY] == 2 and penalty > 0 else length
            best = live[0][1] / (reach - len(prompt)) ** penalty
            if ints[EARLY] == 1 or min(d[1] for d in done) >= best:
                break
        if length >= limit:
            for tokens, total in live:
                add(tokens, total)
            break
    return sorted(done, key=lambda d: -d[1])


def chi_square_p(counts, expected):
    """The chance of counts as far from what is expected, or farther (Wilson and Hilferty)."""
    k = len(counts) - 1
    x = float((((counts - expected) ** 2) / expected).sum())
    return 0.5 * math.erfc(((x / k) ** (1 / 3) - (1 - 2 / (9 * k))) / math.sqrt(2 / (9 * k)) / math.sqrt(2))
