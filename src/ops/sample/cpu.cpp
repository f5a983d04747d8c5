// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/element.h"
#include "base/round.h"
#include "families/decoding/tensors.h"
#include "families/decoding/weights.h"
#include "ops/sample/op.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::sample {

namespace {

using namespace decoding;

// Larger for what comes first.
uint64_t keyOf(float x, int64_t id)
{
    return uint64_t(orderOf(x)) << 32 | ~uint32_t(id);
}

// Chooses among the tokens of one row.
class Choice
{
public:
    static int64_t bytes(int64_t tokens)
    {
        return roundUp(tokens * int64_t(sizeof(uint64_t)) + (tokens + blocksOf(tokens)) * int64_t(sizeof(float)), 64);
    }

    Choice(TokenKernels const& k, Request const& r, float const* scores, int64_t tokens, void* memory)
        : k_(k), r_(r), scores_(scores), tokens_(tokens), list_(static_cast<uint64_t*>(memory)),
          x_(reinterpret_cast<float*>(list_ + tokens)), tops_(x_ + tokens)
    {}

    // -1: none of them can come.
    int32_t token(int32_t length)
    {
        k_.divide(scores_, tokens_, r_.temperature > 0 ? r_.temperature : 1, x_);
        for (int64_t b = 0; b < blocksOf(tokens_); ++b)
            tops_[b] = k_.most(x_ + b * kBlock, endOf(b) - b * kBlock);
        most_ = k_.most(tops_, blocksOf(tokens_));
        if (isNever(most_))
            return -1;
        if (r_.temperature == 0)
            return first(most_);
        cutByCount();
        if (r_.topP < 1)
            cutByShare();
        return drawn(uint32_t(length));
    }

private:
    static constexpr int kHalvings = 4;   // of where the share ends, before tokens are looked at one by one
    static constexpr int kBuckets = 2048; // of scores, up to 32 below the largest
    static constexpr int64_t kFew = 1024, kBlock = 1024;

    static int64_t blocksOf(int64_t tokens) { return (tokens + kBlock - 1) / kBlock; }
    int64_t endOf(int64_t block) const { return std::min((block + 1) * kBlock, tokens_); }
    int32_t first(float x) const
    {
        int64_t const block = std::find(tops_, tops_ + blocksOf(tokens_), x) - tops_;
        return int32_t(std::find(x_ + block * kBlock, x_ + endOf(block), x) - x_);
    }
    // Calls f(i) for scores that are not below `low`.
    template <class F>
    void forEachFrom(float low, F const& f) const
    {
        for (int64_t b = 0; b < blocksOf(tokens_); ++b)
            if (tops_[b] >= low)
                for (int64_t i = b * kBlock; i < endOf(b); ++i)
                    if (x_[i] >= low)
                        f(i);
    }
    uint64_t sumFrom(float low) const
    {
        uint64_t sum = 0;
        for (int64_t b = 0; b < blocksOf(tokens_); ++b)
            if (tops_[b] >= low)
                sum += k_.sum(x_ + b * kBlock, endOf(b) - b * kBlock, most_, low, 0);
        return sum;
    }

    bool stays(int64_t i) const { return x_[i] > least_ || (x_[i] == least_ && i <= last_); }
    static int bucketOf(float below) { return int(below * float(kBuckets / 32)); }

    void cutByCount()
    {
        int64_t const k = r_.topK;
        if (k <= 0 || k >= tokens_)
            return;
        auto* const best = reinterpret_cast<float*>(list_);
        if (k <= kFew) {
            // A heap with the worst of them on top.
            int64_t count = 0;
            for (int64_t b = 0; b < blocksOf(tokens_); ++b)
                for (int64_t i = b * kBlock; i < endOf(b) && (count < k || tops_[b] > best[0]); ++i)
                    if (count < k) {
                        best[count++] = x_[i];
                        std::push_heap(best, best + count, std::greater<>());
                    } else if (x_[i] > best[0]) {
                        std::pop_heap(best, best + k, std::greater<>());
                        best[k - 1] = x_[i];
                        std::push_heap(best, best + k, std::greater<>());
                    }
            least_ = std::max(best[0], -kLargest);
        } else {
            std::copy_n(x_, tokens_, best);
            std::nth_element(best, best + k - 1, best + tokens_, std::greater<>());
            least_ = std::max(best[k - 1], -kLargest);
        }
    }

    void cutByShare()
    {
        uint64_t const share = shareOf(r_.topP, sumFrom(least_));
        // Scores from `low` on have the share, those from `high` on do not: their weights are `sum`.
        float low = least_, high = std::numeric_limits<float>::infinity();
        uint64_t sum = 0;
        auto const isEnough = [&](float from) {
            uint64_t const all = sumFrom(from);
            (all < share ? high : low) = from;
            if (all < share)
                sum = all;
            return all >= share;
        };
        for (float near = 2; near <= 16 && !isEnough(std::max(least_, most_ - near)); near *= 2)
            continue;
        for (int i = 0; i < kHalvings && high <= kLargest; ++i)
            isEnough(low / 2 + high / 2);
        uint64_t sums[kBuckets] = {};
        forEachFrom(low, [&](int64_t i) {
            if (float const below = most_ - x_[i]; x_[i] < high && below < 32)
                sums[bucketOf(below)] += weightOf(below);
        });
        int bucket = 0;
        while (sum + sums[bucket] < share)
            sum += sums[bucket++];
        int64_t count = 0;
        forEachFrom(low, [&](int64_t i) {
            if (float const below = most_ - x_[i]; x_[i] < high && below < 32 && bucketOf(below) == bucket)
                list_[count++] = keyOf(x_[i], i);
        });
        std::sort(list_, list_ + count, std::greater<>());
        for (int64_t k = 0; sum < share; ++k) {
            last_ = int64_t(~uint32_t(list_[k]));
            least_ = x_[last_];
            sum += weightOf(most_ - least_);
        }
    }

    int32_t drawn(uint32_t step)
    {
        uint64_t const leastOfAll = leastWeight(r_.minP);
        auto const weightAt = [&](int64_t i) {
            uint64_t const w = stays(i) ? weightOf(most_ - x_[i]) : 0;
            return w >= leastOfAll ? w : 0;
        };
        // Equals of the least stay up to `last_`.
        float const above = std::nextafter(least_, std::numeric_limits<float>::infinity());
        auto const sumOf = [&](int64_t begin, int64_t end, float least) {
            return begin < end ? k_.sum(x_ + begin, end - begin, most_, least, leastOfAll) : 0;
        };
        uint64_t total = 0;
        for (int64_t b = 0; b < blocksOf(tokens_); ++b) { // list_: sums of blocks
            int64_t const cut = std::clamp(last_ + 1, b * kBlock, endOf(b));
            list_[b] = tops_[b] >= least_ ? sumOf(b * kBlock, cut, least_) + sumOf(cut, endOf(b), above) : 0;
            total += list_[b];
        }
        uint64_t left = drawOf(r_, step, total);
        int64_t i = 0;
        for (; left >= list_[i / kBlock]; i += kBlock)
            left -= list_[i / kBlock];
        for (uint64_t w = weightAt(i); left >= w; w = weightAt(++i))
            left -= w;
        return int32_t(i);
    }

    TokenKernels const& k_;
    Request const& r_;
    float const* const scores_;
    int64_t const tokens_;
    uint64_t* const list_;
    float* const x_;    // scores / temperature
    float* const tops_; // the largest of each block
    float most_ = 0;
    // What stays: larger ones, and of these up to `last_`.
    float least_ = -kLargest;
    int64_t last_ = INT32_MAX;
};

class Rows
{
public:
    Rows(TokenKernels const& k, RunArgs& args)
        : k_(k), in_(args.inputs), out_(args.outputs), tokens_(in_[kLogits].dims[1]),
          capacity_(int32_t(in_[kSequences].dims[1])), ends_(endsAt(in_, kEnds)), stop_(wordsAt(in_, kStopWords))
    {}

    void run(int64_t n, void* memory) const
    {
        Request const r = requestAt(in_[kFloats], in_[kInts], n);
        int32_t length = clamped(in_[kLengths].as<int32_t>()[n], 0, capacity_);
        int32_t const prompt = clamped(in_[kPrompts].as<int32_t>()[n], 0, length), limit = limitOf(r, capacity_);
        int32_t* const sequence = out_[kNextSequences].as<int32_t>() + n * capacity_;
        if (int32_t const* from = in_[kSequences].as<int32_t>() + n * capacity_; from != sequence)
            std::copy_n(from, capacity_, sequence);
        auto const isFinished = [&] {
            return length == 0 || length >= limit ||
                   (length > prompt &&
                    (isEnd(r, ends_, sequence[length - 1]) || endsWithWord(stop_.of(n), sequence, length)));
        };
        int32_t token = r.pad;
        float log = 0;
        bool finished = isFinished();
        if (!finished) {
            int32_t const chosen = Choice(k_, r, in_[kScores].as<float>() + n * tokens_, tokens_, memory).token(length);
            log = chosen < 0 ? never() : logOf(n, chosen);
            finished = true;
            if (chosen >= 0) {
                sequence[length++] = token = chosen;
                finished = isFinished();
            }
        }
        out_[kToken].as<int32_t>()[n] = token;
        out_[kFinished].as<int32_t>()[n] = finished;
        out_[kLog].as<float>()[n] = log;
        out_[kNextLengths].as<int32_t>()[n] = length;
    }

private:
    float logOf(int64_t n, int32_t token) const
    {
        return withFloat(in_[kLogits].type, [&](auto element) {
            auto const* x = in_[kLogits].as<decltype(element)>() + n * tokens_;
            float some[kAtOnce];
            scoresOf(k_, x + token, 1, some);
            float const score = some[0];
            LogSum const sum = logSumOf(k_, [&](auto const& f) {
                for (int64_t begin = 0; begin < tokens_; begin += kAtOnce) {
                    int64_t const count = std::min(kAtOnce, tokens_ - begin);
                    scoresOf(k_, x + begin, count, some);
                    f(some, count);
                }
            });
            return isNever(score) ? score : float(sum.of(score));
        });
    }

    static constexpr int64_t kAtOnce = 1024;

    TokenKernels const& k_;
    std::span<TensorRef const> const in_;
    std::span<TensorRef> const out_;
    int64_t const tokens_;
    int32_t const capacity_;
    Ends const ends_;
    Words const stop_;
};

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return slotsOf(in[kLogits].dims[0]) * Choice::bytes(in[kLogits].dims[1]);
}

Result<void> runBy(TokenKernels const& k, RunArgs& args)
{
    TensorRef const& logits = args.inputs[kLogits];
    int64_t const rows = logits.dims[0], slots = slotsOf(rows), bytes = Choice::bytes(logits.dims[1]);
    Rows const all(k, args);
    args.workers->run(slots, [&](int64_t slot, int) {
        for (int64_t n = slot; n < rows; n += slots)
            all.run(n, static_cast<std::byte*>(args.workspace) + slot * bytes);
    });
    return {};
}

constexpr PlainTactic kPlain{"sample_any_plain_cpu", 1,
                             [](ir::Node const&, RunArgs& args) { return runBy(kPlainTokens, args); }, workspace};

constexpr CpuFunctions kVectors{.load = [](CpuTactic const& t, Problem const& p, Config const&, PackedConstants&) {
    auto const run = [&k = tokensOf(t.isa())](RunArgs& args) { return runBy(k, args); };
    return CpuFunctions::Loaded(kernelOf(*p.node, run, workspace));
}};
constexpr CpuTactic kAvx512{"sample_any_vectors_avx512", 1, kernels::jit::Isa::kAvx512, kVectors};
constexpr CpuTactic kAvx2{"sample_any_vectors_avx2", 1, kernels::jit::Isa::kAvx2, kVectors};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::sample
