// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "families/decoding/row_params.h"
#include "ops/sample/op.h"

namespace tw::ops::sample {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kOne = 1099511627776; // 2^40, the largest weight

float usable(double v)
{
    return std::isnan(v) ? -kInfinity : std::min(float(v), FLT_MAX);
}

uint64_t weight(float most, float x)
{
    float const below = most - x;
    if (!(below < 32))
        return 0;
    uint64_t const point25 = uint64_t(double(below) * 67108864) * 3098164009 / 4294967296;
    uint64_t const f = point25 % 33554432 * 128;
    uint64_t sum = 0;
    for (uint64_t c : {4073454ULL, 39582418ULL, 237543469ULL, 1031582456ULL, 2977031600ULL})
        sum = f * (c - sum) / 4294967296;
    return (4294967296 - sum) * 256 / (uint64_t(1) << point25 / 33554432);
}

// Philox as its authors have it: counters and keys in fours and twos.
uint64_t randomBits(uint32_t const (&key)[2], uint32_t step, uint32_t stream)
{
    uint32_t c[4] = {step, stream, 0, 0};
    for (uint32_t round = 0; round < 10; ++round) {
        uint64_t const first = 0xD2511F53ULL * c[0], second = 0xCD9E8D57ULL * c[2];
        uint32_t const next[4] = {
            uint32_t(second / 4294967296) ^ c[1] ^ (key[0] + round * 0x9E3779B9U), uint32_t(second % 4294967296),
            uint32_t(first / 4294967296) ^ c[3] ^ (key[1] + round * 0xBB67AE85U), uint32_t(first % 4294967296)};
        std::copy_n(next, 4, c);
    }
    return c[1] * 4294967296ULL + c[0];
}

class Row
{
public:
    Row(RefContext& ctx, int64_t n) : ctx_(ctx), n_(n), tokens_(ctx.in(kLogits).dims[1])
    {
        int64_t const capacity = ctx.in(kSequences).dims[1];
        length = std::clamp<int64_t>(ctx.in(kLengths).getInt(n), 0, capacity);
        prompt = std::clamp<int64_t>(ctx.in(kPrompts).getInt(n), 0, length);
        for (int64_t i = 0; i < capacity; ++i)
            sequence.push_back(ctx.in(kSequences).getInt(n * capacity + i));
        limit = integer(decoding::kMaxLength, 0);
        if (limit <= 0 || limit > capacity)
            limit = capacity;
    }

    std::vector<int64_t> sequence;
    int64_t length = 0, prompt = 0, limit = 0;

    int64_t integer(int column, int64_t otherwise) const
    {
        TensorRef const& t = ctx_.in(kInts);
        return column < t.dims[1] ? t.getInt(n_ * t.dims[1] + column) : otherwise;
    }
    double number(int column, double otherwise) const
    {
        TensorRef const& t = ctx_.in(kFloats);
        double const v = column < t.dims[1] ? t.get(n_ * t.dims[1] + column) : otherwise;
        return std::isnan(v) ? otherwise : v;
    }
    bool isFinished() const
    {
        return length == 0 || length >= limit || (length > prompt && (isAtEnd() || isAtStopWord()));
    }

    std::optional<int64_t> choice() const
    {
        std::vector<int64_t> order;
        std::vector<float> x;
        for (int64_t i = 0; i < tokens_; ++i) {
            x.push_back(usable(ctx_.in(kScores).get(n_ * tokens_ + i)));
            if (!std::isinf(x.back()))
                order.push_back(i);
        }
        if (order.empty())
            return std::nullopt;
        auto const sort = [&] {
            std::stable_sort(order.begin(), order.end(),
                             [&](int64_t a, int64_t b) { return x[size_t(a)] > x[size_t(b)]; });
        };
        sort();
        double const t = ctx_.in(kFloats).dims[1] > 0 ? ctx_.in(kFloats).get(n_ * ctx_.in(kFloats).dims[1]) : 1;
        if (!(t > 0))
            return order[0];
        for (float& v : x)
            v = std::isinf(v) ? v : std::clamp(v / float(t), -kInfinity, FLT_MAX);
        std::erase_if(order, [&](int64_t i) { return std::isinf(x[size_t(i)]); });
        if (order.empty())
            return std::nullopt;
        std::sort(order.begin(), order.end());
        sort();
        return drawn(order, x);
    }

private:
    int64_t drawn(std::vector<int64_t> order, std::vector<float> const& x) const
    {
        auto const at = [&](int64_t i) { return x[size_t(i)]; };
        auto const weightAt = [&](int64_t i) { return weight(at(order[0]), at(i)); };
        auto const sumOf = [&](std::vector<int64_t> const& ids) {
            return std::accumulate(ids.begin(), ids.end(), uint64_t(0),
                                   [&](uint64_t sum, int64_t i) { return sum + weightAt(i); });
        };
        if (int64_t const k = integer(decoding::kTopK, 0); k > 0 && size_t(k) < order.size()) {
            float const least = at(order[size_t(k - 1)]);
            std::erase_if(order, [&](int64_t i) { return at(i) < least; });
        }
        if (float const p = float(number(decoding::kTopP, 1)); p < 1) {
            double const share = std::ceil(double(std::max(p, 0.F)) * double(sumOf(order)));
            uint64_t sum = 0;
            size_t count = 0;
            while (count == 0 || (count < order.size() && double(sum) < share))
                sum += weightAt(order[count++]);
            order.resize(count);
        }
        double const minP = std::clamp(number(decoding::kMinP, 0), 0., 1.);
        int64_t const best = order[0];
        std::erase_if(order, [&](int64_t i) { return double(weight(at(best), at(i))) < double(float(minP)) * kOne; });
        // By id from here on; the first of `order` is no longer the best.
        std::sort(order.begin(), order.end());
        uint64_t total = 0;
        for (int64_t i : order)
            total += weight(at(best), at(i));
        uint32_t const key[2] = {uint32_t(integer(decoding::kSeedLow, 0)), uint32_t(integer(decoding::kSeedHigh, 0))};
        uint64_t const bits = randomBits(key, uint32_t(length), uint32_t(integer(decoding::kStream, 0)));
        auto const target = uint64_t(static_cast<unsigned __int128>(bits) * total >> 64);
        uint64_t sum = 0;
        for (int64_t i : order)
            if ((sum += weight(at(best), at(i))) > target)
                return i;
        return best;
    }

    bool isAtEnd() const
    {
        int64_t const last = sequence[size_t(length - 1)];
        bool is = last == integer(decoding::kEos, -1);
        for (int64_t i = 0; ctx_.has(kEnds) && i < ctx_.in(kEnds).count(); ++i)
            is = is || last == ctx_.in(kEnds).getInt(i);
        return is && last >= 0;
    }
    bool isAtStopWord() const
    {
        if (!ctx_.has(kStopWords))
            return false;
        int64_t const room = ctx_.in(kStopWords).dims[2];
        int64_t begin = 0;
        for (int64_t w = 0; w < room; ++w) {
            int64_t const end = ctx_.in(kStopWords).getInt((2 * n_ + 1) * room + w);
            if (end <= begin || end > room)
                return false;
            bool same = end - begin <= length;
            for (int64_t i = begin; same && i < end; ++i)
                same = ctx_.in(kStopWords).getInt(2 * n_ * room + i) == sequence[size_t(length - end + i)];
            if (same)
                return true;
            begin = end;
        }
        return false;
    }

    RefContext& ctx_;
    int64_t n_, tokens_;
};

double logOf(TensorRef const& logits, int64_t row, int64_t token)
{
    int64_t const tokens = logits.dims[1];
    float most = -kInfinity;
    for (int64_t i = 0; i < tokens; ++i)
        most = std::max(most, usable(logits.get(row * tokens + i)));
    double sum = 0;
    for (int64_t i = 0; i < tokens; ++i)
        if (float const x = usable(logits.get(row * tokens + i)); !std::isinf(x))
            sum += std::exp(double(x) - most);
    float const x = usable(logits.get(row * tokens + token));
    return std::isinf(x) ? -kInfinity : double(x) - double(most) - std::log(sum);
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    for (int64_t n = 0; n < ctx.in(kLogits).dims[0]; ++n) {
        Row row(ctx, n);
        int64_t token = row.integer(decoding::kPad, 0);
        double log = 0;
        bool finished = row.isFinished();
        if (!finished) {
            std::optional<int64_t> const choice = row.choice();
            log = choice ? logOf(ctx.in(kLogits), n, *choice) : -kInfinity;
            finished = true;
            if (choice) {
                token = *choice;
                row.sequence[size_t(row.length++)] = token;
                finished = row.isFinished();
            }
        }
        ctx.out(kToken).setInt(n, token);
        ctx.out(kFinished).setInt(n, finished);
        ctx.out(kLog).set(n, log);
        ctx.out(kNextLengths).setInt(n, row.length);
        for (size_t i = 0; i < row.sequence.size(); ++i)
            ctx.out(kNextSequences).setInt(n * int64_t(row.sequence.size()) + int64_t(i), row.sequence[i]);
    }
    return {};
}

} // namespace tw::ops::sample
