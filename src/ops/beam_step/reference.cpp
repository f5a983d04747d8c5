// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "families/decoding/row_params.h"
#include "ops/beam_step/op.h"

namespace tw::ops::beam_step {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float usable(double v)
{
    return std::isnan(v) ? -kInfinity : std::min(float(v), FLT_MAX);
}

using Ids = std::vector<int64_t>;

struct End
{
    Ids ids; // of the whole capacity
    int64_t length = 0;
    float score = -kInfinity;
};

struct Beam
{
    float sum = -kInfinity;
    int64_t token = 0, parent = 0;
};

class Search
{
public:
    Search(RefContext& ctx, int64_t n)
        : ctx_(ctx), n_(n), beams_(ctx.in(kSequences).dims[1]), capacity_(ctx.in(kSequences).dims[2]),
          tokens_(ctx.in(kScores).dims[1])
    {
        length_ = std::clamp<int64_t>(ctx.in(kLengths).getInt(n), 0, capacity_);
        prompt_ = std::clamp<int64_t>(ctx.in(kPrompts).getInt(n), 0, length_);
        limit_ = integer(decoding::kMaxLength, 0);
        if (limit_ <= 0 || limit_ > capacity_)
            limit_ = capacity_;
        for (int64_t j = 0; j < beams_; ++j) {
            next_.push_back({usable(ctx.in(kSums).get(n * beams_ + j)), integer(decoding::kPad, 0), j});
            sequences_.push_back(idsOf(kSequences, j));
        }
        for (int64_t k = 0; k < beams_; ++k) {
            int64_t const length = ctx.in(kEndLengths).getInt(n * beams_ + k);
            if (length <= 0)
                break;
            ends_.push_back(
                {idsOf(kEndSequences, k), std::min(length, capacity_), usable(ctx.in(kEndScores).get(n * beams_ + k))});
        }
    }

    void run()
    {
        bool isDone = ctx_.in(kDone).getInt(n_) != 0 || length_ == 0;
        if (!isDone && length_ >= limit_) {
            endAll();
            isDone = true;
        } else if (!isDone) {
            advance();
            isDone = areEndsEnough() || next_[0].sum == -kInfinity;
            if (!isDone && length_ >= limit_) {
                endAll();
                isDone = true;
            }
        }
        write(isDone);
    }

private:
    int64_t integer(int column, int64_t otherwise) const
    {
        TensorRef const& t = ctx_.in(kInts);
        return column < t.dims[1] ? t.getInt(n_ * t.dims[1] + column) : otherwise;
    }
    Ids idsOf(int input, int64_t j) const
    {
        Ids ids;
        for (int64_t i = 0; i < capacity_; ++i)
            ids.push_back(ctx_.in(input).getInt((n_ * beams_ + j) * capacity_ + i));
        return ids;
    }
    bool isEnd(int64_t token) const
    {
        bool is = token == integer(decoding::kEos, -1);
        for (int64_t i = 0; ctx_.has(kEndIds) && i < ctx_.in(kEndIds).count(); ++i)
            is = is || token == ctx_.in(kEndIds).getInt(i);
        return is;
    }
    double penalty() const
    {
        TensorRef const& t = ctx_.in(kFloats);
        double const v = t.dims[1] > decoding::kLengthPenalty ? t.get(n_ * t.dims[1] + decoding::kLengthPenalty) : 1;
        return std::isfinite(v) ? v : 1;
    }
    float scored(float sum, int64_t length) const
    {
        return float(double(sum) / std::pow(double(std::max<int64_t>(length - prompt_, 1)), penalty()));
    }
    void add(End end)
    {
        if (int64_t(ends_.size()) == beams_) {
            if (!(end.score > ends_.back().score))
                return;
            ends_.pop_back();
        }
        auto const place =
            std::find_if(ends_.begin(), ends_.end(), [&](End const& e) { return !(e.score > end.score); });
        ends_.insert(place, std::move(end));
    }

    void advance()
    {
        struct Candidate
        {
            float sum;
            int64_t beam, token;
        };
        std::vector<Candidate> all;
        for (int64_t j = 0; j < beams_; ++j)
            for (int64_t t = 0; t < tokens_; ++t) {
                float const score = usable(ctx_.in(kScores).get((n_ * beams_ + j) * tokens_ + t));
                float const sum = usable(next_[size_t(j)].sum + score);
                if (!std::isinf(sum))
                    all.push_back({sum, j, t});
            }
        std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.sum > b.sum; });
        all.resize(std::min(all.size(), size_t(2 * beams_)));

        std::vector<Ids> const before = sequences_;
        size_t filled = 0, rank = 0;
        for (auto const& [sum, beam, token] : all) {
            Ids ids = before[size_t(beam)];
            ids[size_t(length_)] = token;
            if (isEnd(token)) {
                if (int64_t(rank) < beams_)
                    add({ids, length_ + 1, scored(sum, length_ + 1)});
            } else if (int64_t(filled) < beams_) {
                next_[filled] = {sum, token, beam};
                sequences_[filled++] = ids;
            }
            ++rank;
        }
        for (; int64_t(filled) < beams_; ++filled) {
            next_[filled] = {-kInfinity, integer(decoding::kPad, 0), int64_t(filled)};
            sequences_[filled] = before[filled];
            sequences_[filled][size_t(length_)] = integer(decoding::kPad, 0);
        }
        ++length_;
        hasMoved_ = true;
    }
    bool areEndsEnough() const
    {
        if (int64_t(ends_.size()) < beams_)
            return false;
        int64_t const early = integer(decoding::kEarly, 0);
        if (early == 1)
            return true;
        int64_t const length = early == 2 && penalty() > 0 ? limit_ : length_;
        return ends_.back().score >= scored(next_[0].sum, length);
    }
    void endAll()
    {
        for (size_t j = 0; j < next_.size(); ++j)
            if (!std::isinf(next_[j].sum))
                add({sequences_[j], length_, scored(next_[j].sum, length_)});
    }

    void write(bool isDone) const
    {
        ctx_.out(kNextLengths).setInt(n_, length_);
        ctx_.out(kNextDone).setInt(n_, isDone);
        for (int64_t j = 0; j < beams_; ++j) {
            int64_t const at = n_ * beams_ + j;
            Beam const& b = next_[size_t(j)];
            End const none{Ids(size_t(capacity_), integer(decoding::kPad, 0)), 0, -kInfinity};
            End const& end = j < int64_t(ends_.size()) ? ends_[size_t(j)] : none;
            ctx_.out(kTokens).setInt(at, b.token);
            ctx_.out(kParents).setInt(at, b.parent);
            ctx_.out(kNextSums).set(at, b.sum);
            ctx_.out(kNextEndLengths).setInt(at, end.length);
            ctx_.out(kNextEndScores).set(at, end.score);
            for (int64_t i = 0; i < capacity_; ++i) {
                ctx_.out(kNextSequences).setInt(at * capacity_ + i, sequences_[size_t(j)][size_t(i)]);
                ctx_.out(kNextEndSequences).setInt(at * capacity_ + i, end.ids[size_t(i)]);
            }
            if (!ctx_.attrs<Attrs>().places)
                continue;
            Ids places = idsOf(kPlaces, b.parent);
            if (hasMoved_ && length_ - 1 < capacity_)
                places[size_t(length_ - 1)] = j;
            for (int64_t i = 0; i < capacity_; ++i)
                ctx_.out(kNextPlaces).setInt(at * capacity_ + i, places[size_t(i)]);
        }
    }

    RefContext& ctx_;
    int64_t n_, beams_, capacity_, tokens_;
    int64_t length_ = 0, prompt_ = 0, limit_ = 0;
    bool hasMoved_ = false;
    std::vector<Beam> next_;
    std::vector<Ids> sequences_;
    std::vector<End> ends_;
};

} // namespace

Result<void> reference(RefContext& ctx)
{
    for (int64_t n = 0; n < ctx.in(kSequences).dims[0]; ++n)
        Search(ctx, n).run();
    return {};
}

} // namespace tw::ops::beam_step
