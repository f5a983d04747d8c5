// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "base/element.h"
#include "families/decoding/tensors.h"
#include "families/decoding/weights.h"
#include "ops/sample/op.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::sample {

namespace {

using namespace decoding;

constexpr int64_t kRowsAtOnce = 32; // each has memory for all tokens

int64_t slotsOf(int64_t rows)
{
    return std::min(rows, kRowsAtOnce);
}

// Larger for what comes first.
uint64_t keyOf(float x, int64_t id)
{
    return uint64_t(orderOf(x)) << 32 | ~uint32_t(id);
}

// Chooses among the tokens of one row.
class Choice
{
public:
    static int64_t bytes(int64_t tokens) { return tokens * int64_t(sizeof(uint64_t) + sizeof(float)); }

    Choice(Request const& r, float const* scores, int64_t tokens, void* memory)
        : r_(r), scores_(scores), tokens_(tokens), list_(static_cast<uint64_t*>(memory)),
          x_(reinterpret_cast<float*>(list_ + tokens))
    {}

    // -1: none of them can come.
    int32_t token(int32_t length)
    {
        int32_t best = -1;
        float most = never();
        for (int64_t i = 0; i < tokens_; ++i)
            if (float const v = scoreOf(scores_[i]); v > most)
                most = v, best = int32_t(i);
        if (best < 0 || r_.temperature == 0)
            return best;
        most_ = scoreOf(most / r_.temperature);
        if (isNever(most_))
            return -1;
        for (int64_t i = 0; i < tokens_; ++i) {
            float const v = scoreOf(scores_[i]);
            x_[i] = isNever(v) ? v : scoreOf(v / r_.temperature);
        }
        cutByCount();
        if (r_.topP < 1)
            cutByShare();
        return drawn(uint32_t(length));
    }

private:
    static constexpr int kBuckets = 2048; // of scores, up to 32 below the largest
    static constexpr int64_t kFew = 1024, kBlock = 1024;

    bool stays(int64_t i) const { return x_[i] > least_ || (x_[i] == least_ && i <= last_); }
    static int bucketOf(float below) { return int(below * float(kBuckets / 32)); }

    void cutByCount()
    {
        int64_t const k = r_.topK;
        if (k <= 0 || k >= tokens_)
            return;
        auto* const best = reinterpret_cast<float*>(list_);
        if (k <= kFew) {
            std::partial_sort_copy(x_, x_ + tokens_, best, best + k, std::greater<>());
        } else {
            std::copy_n(x_, tokens_, best);
            std::nth_element(best, best + k - 1, best + tokens_, std::greater<>());
        }
        least_ = std::max(best[k - 1], -kLargest);
    }

    void cutByShare()
    {
        uint64_t sums[kBuckets] = {}, total = 0;
        for (int64_t i = 0; i < tokens_; ++i)
            if (float const below = most_ - x_[i]; below < 32 && stays(i))
                sums[bucketOf(below)] += weightOf(below);
        for (uint64_t s : sums)
            total += s;
        uint64_t const share = shareOf(r_.topP, total);
        uint64_t sum = 0;
        int bucket = 0;
        while (sum + sums[bucket] < share)
            sum += sums[bucket++];
        int64_t count = 0;
        for (int64_t i = 0; i < tokens_; ++i)
            if (float const below = most_ - x_[i]; below < 32 && bucketOf(below) == bucket && stays(i))
                list_[count++] = keyOf(x_[i], i);
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
        uint64_t total = 0;
        for (int64_t begin = 0; begin < tokens_; begin += kBlock) { // list_: sums of blocks
            uint64_t sum = 0;
            for (int64_t i = begin, end = std::min(begin + kBlock, tokens_); i < end; ++i)
                sum += weightAt(i);
            list_[begin / kBlock] = sum;
            total += sum;
        }
        uint64_t left = drawOf(r_, step, total);
        int64_t i = 0;
        for (; left >= list_[i / kBlock]; i += kBlock)
            left -= list_[i / kBlock];
        for (uint64_t w = weightAt(i); left >= w; w = weightAt(++i))
            left -= w;
        return int32_t(i);
    }

    Request const& r_;
    float const* const scores_;
    int64_t const tokens_;
    uint64_t* const list_;
    float* const x_; // scores / temperature
    float most_ = 0;
    // What stays: larger ones, and of these up to `last_`.
    float least_ = -kLargest;
    int64_t last_ = INT32_MAX;
};

class Rows
{
public:
    explicit Rows(RunArgs& args)
        : in_(args.inputs), out_(args.outputs), tokens_(in_[kLogits].dims[1]),
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
            int32_t const chosen = Choice(r, in_[kScores].as<float>() + n * tokens_, tokens_, memory).token(length);
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
            float const score = scoreAt(x, token);
            return isNever(score) ? score : float(logSumOf(x, tokens_).of(score));
        });
    }

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

Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const& logits = args.inputs[kLogits];
    int64_t const rows = logits.dims[0], slots = slotsOf(rows), bytes = Choice::bytes(logits.dims[1]);
    Rows const all(args);
    args.workers->run(slots, [&](int64_t slot, int) {
        for (int64_t n = slot; n < rows; n += slots)
            all.run(n, static_cast<std::byte*>(args.workspace) + slot * bytes);
    });
    return {};
}

constexpr PlainTactic kPlain{"sample_any_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::sample
