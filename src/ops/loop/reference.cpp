// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>

#include "ops/loop/op.h"

namespace tw::ops::loop {

namespace {

// The part of `whole` at `at` of an axis, element by element: part[o, i] = whole[o, at, i].
template <class F>
void forEachOfSlice(Extents const& whole, int64_t axis, int64_t at, F const& f)
{
    int64_t const outer = whole.volume(0, int(axis)), extent = whole[int(axis)],
                  inner = whole.volume(int(axis) + 1, whole.rank);
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i)
            f(o * inner + i, (o * extent + at) * inner + i);
}

void copyElement(TensorRef const& to, int64_t i, TensorRef const& from, int64_t j)
{
    if (isFloating(from.type))
        to.set(i, from.get(j));
    else
        to.setInt(i, from.getInt(j));
}

Extents without(Extents const& e, int64_t axis)
{
    Extents out;
    for (int d = 0; d < e.rank; ++d)
        if (d != axis)
            out.push(e[d]);
    return out;
}

class Loop
{
public:
    explicit Loop(RefContext& ctx)
        : ctx_(ctx), attrs_(ctx.attrs<Attrs>()), at_(attrs_), stacks_(at_.stacked),
          counts_(isAlwaysTrue(*ctx.node().regions[0]))
    {
        for (size_t i = 0; at_.inputOf(i) < size_t(ctx.inputCount()); ++i)
            now_.push_back(ctx.in(int(at_.inputOf(i))));
        slices_.resize(at_.iterated);
    }

    Result<void> run()
    {
        int64_t trip = 0;
        for (;; ++trip) {
            if (ctx_.has(int(at_.count())) && trip >= ctx_.in(int(at_.count())).getInt(0))
                break;
            for (size_t s = 0; s < at_.iterated; ++s)
                slice(s, trip);
            TW_ASSIGN(bool const goesOn, condition());
            if (!goesOn)
                break;
            TW_TRY(step(trip));
        }
        for (size_t i = 0; i < at_.carried; ++i)
            if (now_[i].sizeBytes() > 0)
                std::memcpy(ctx_.out(int(i)).data, now_[i].data, size_t(now_[i].sizeBytes()));
        for (size_t k = 0; k < at_.stacked; ++k)
            TW_TRY(writeStack(k, trip));
        return {};
    }

private:
    // Of a trip behind the end: the last one.
    void slice(size_t s, int64_t trip)
    {
        TensorRef const& x = ctx_.in(int(at_.iteratedAt(s)));
        int64_t const axis = attrs_.iteratorAxes[s], extent = x.dims[int(axis)], i = std::min(trip, extent - 1);
        slices_[s] = Tensor(x.type, without(x.dims, axis));
        now_[at_.carried + s] = slices_[s].ref();
        if (extent > 0)
            forEachOfSlice(x.dims, axis, attrs_.iteratorReverse[s] ? extent - 1 - i : i,
                           [&](int64_t to, int64_t from) { copyElement(slices_[s].ref(), to, x, from); });
    }
    Result<bool> condition()
    {
        if (counts_)
            return true;
        TW_ASSIGN(auto goesOn, ctx_.runRegion(0, now_));
        return goesOn[0].ref().getInt(0) != 0;
    }
    Result<void> step(int64_t trip)
    {
        if (trip >= ctx_.maxTrips)
            return ctx_.error("the loop did not end after {} iterations", trip);
        for (size_t s = 0; s < at_.iterated; ++s) {
            int const i = int(at_.iteratedAt(s));
            if (int64_t const extent = ctx_.in(i).dims[int(attrs_.iteratorAxes[s])]; trip >= extent)
                return ctx_.error("iteration {} is past the extent {} of the iterated tensor '{}'", trip, extent,
                                  ctx_.node().inputs[i]->name);
        }
        TW_ASSIGN(auto next, ctx_.runRegion(1, now_));
        for (size_t i = 0; i < at_.carried; ++i) {
            if (next[i].type() != now_[i].type || !(next[i].dims() == now_[i].dims))
                return ctx_.error("carried value {} had shape {}, iteration {} gives {}", i, now_[i].dims.str(), trip,
                                  next[i].dims().str());
            now_[i] = next[i].ref();
        }
        for (size_t k = 0; k < at_.stacked; ++k) {
            if (!stacks_[k].empty() && !(stacks_[k][0].dims() == next[at_.carried + k].dims()))
                return ctx_.error("the value of stack {} had shape {}, iteration {} gives {}", k,
                                  stacks_[k][0].dims().str(), trip, next[at_.carried + k].dims().str());
            stacks_[k].push_back(std::move(next[at_.carried + k]));
        }
        next.resize(at_.carried);
        carried_ = std::move(next);
        return {};
    }
    // What does not fit into the output is not written: the caller sees by the dimensions what it takes.
    Result<void> writeStack(size_t k, int64_t trips)
    {
        int const out = int(at_.carried + k), length = int(at_.lengthAt(k));
        int64_t const axis = attrs_.stackAxes[k], y = ctx_.has(length) ? ctx_.in(length).getInt(0) : trips;
        if (trips > y)
            return ctx_.error(
                "output '{}' has the length {}, {} iterations were made; a length is at least the number of iterations",
                ctx_.node().outputs[size_t(out)]->name, y, trips);
        int64_t const capacity = ctx_.out(out).sizeBytes();
        Extents dims = ctx_.out(out).dims;
        for (int d = 0; d < dims.rank && trips > 0; ++d)
            dims[d] = d == axis ? y : stacks_[k][0].dims()[d < axis ? d : d - 1];
        dims[int(axis)] = y;
        ctx_.setOutputDims(out, dims);
        TensorRef const& to = ctx_.out(out);
        if (to.sizeBytes() > capacity)
            return {};
        std::fill_n(to.as<std::byte>(), to.sizeBytes(), std::byte{0});
        for (int64_t i = 0; i < trips; ++i)
            forEachOfSlice(dims, axis, attrs_.stackReverse[k] ? y - 1 - i : i, [&](int64_t from, int64_t place) {
                copyElement(to, place, stacks_[k][size_t(i)].ref(), from);
            });
        return {};
    }

    RefContext& ctx_;
    Attrs const& attrs_;
    Layout const at_;
    std::vector<TensorRef> now_;  // what the regions see
    std::vector<Tensor> slices_;  // own those of this trip
    std::vector<Tensor> carried_; // own the first of `now_` after the first trip
    std::vector<std::vector<Tensor>> stacks_;
    bool const counts_; // the condition is always true
};

} // namespace

Result<void> reference(RefContext& ctx)
{
    return Loop(ctx).run();
}

} // namespace tw::ops::loop
