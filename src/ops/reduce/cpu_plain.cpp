// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/element.h"
#include "ops/reduce/loops.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::reduce {

namespace {

template <class T>
constexpr bool kReal = !std::is_same_v<T, int8_t> && !std::is_same_v<T, int32_t>;

void storeWhole(int8_t& to, int64_t v)
{
    to = int8_t(std::clamp<int64_t>(v, -128, 127));
}
void storeWhole(int32_t& to, int64_t v)
{
    to = int32_t(uint32_t(uint64_t(v)));
}

// What differs between operations: the accumulator, its first value, how values and accumulators join, the result.
template <class T>
struct Sum
{
    using Acc = std::conditional_t<kReal<T>, double, int64_t>; // below 2^31 elements: int64 cannot overflow
    static Acc first() { return 0; }
    static Acc join(Acc a, Acc b) { return a + b; }
    static double real(Acc a, int64_t) { return double(a); }
    static void finish(T& to, Acc a, int64_t) { storeWhole(to, a); }
};
template <class T>
struct Average : Sum<T>
{
    static double real(typename Sum<T>::Acc a, int64_t count) { return double(a) / double(count); } // 0 / 0 is NaN
    static void finish(T& to, typename Sum<T>::Acc a, int64_t count)
    {
        if constexpr (std::is_same_v<T, int32_t>)
            to = count == 0 ? 0 : int32_t(a / count);
        else
            storeElement(to, count == 0 ? -128.0 : double(a) / double(count));
    }
};
template <class T>
struct Product
{
    using Acc = std::conditional_t<kReal<T>, double, int64_t>;
    static Acc first() { return 1; }
    static Acc join(Acc a, Acc b)
    {
        if constexpr (kReal<T>)
            return a * b;
        else if constexpr (std::is_same_v<T, int32_t>)
            return Acc(int32_t(uint32_t(uint64_t(a) * uint64_t(b)))); // wraps
        else
            return std::clamp<Acc>(a * b, -1024, 1024); // beyond i8 it stays beyond, unless it becomes 0
    }
    static double real(Acc a, int64_t) { return double(a); }
    static void finish(T& to, Acc a, int64_t count) { Sum<T>::finish(to, a, count); }
};
// Maximum (kSign 1) or minimum (kSign -1).
template <class T, int kSign>
struct Extreme
{
    using Acc = std::conditional_t<kReal<T>, float, int32_t>;
    static Acc first()
    {
        if constexpr (kReal<T>)
            return -kSign * std::numeric_limits<float>::infinity();
        else
            return kSign > 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    }
    static Acc join(Acc a, Acc b) { return (kSign > 0 ? b > a : b < a) || b != b ? b : a; }
    static double real(Acc a, int64_t) { return double(a); }
    static void finish(T& to, Acc a, int64_t) { to = T(a); }
};
// `Op` of absolute values or squares.
template <class Op, Before kBefore>
struct Of : Op
{
    static typename Op::Acc enter(float v)
    {
        typename Op::Acc const real = v;
        return kBefore == Before::kAbs ? std::fabs(real) : real * real;
    }
};
// The largest element and the sum of exponentials of differences from it.
struct LogSumExp
{
    struct Acc
    {
        float most = -std::numeric_limits<float>::infinity();
        double sum = 0;
    };
    static Acc first() { return {}; }
    static Acc enter(float v) { return {v, 1}; }
    static Acc join(Acc a, Acc b)
    {
        // Equal ones may be infinite. A NaN makes the sum one, and that stays.
        double const less = a.most == b.most ? 1 : std::exp(-std::fabs(double(a.most) - double(b.most)));
        return a.most > b.most ? Acc{a.most, a.sum + b.sum * less} : Acc{b.most, a.sum * less + b.sum};
    }
    static double real(Acc a, int64_t) { return double(a.most) + std::log(a.sum); }
};

double applied(After after, double v)
{
    return after == After::kSqrt ? std::sqrt(v) : after == After::kLog ? std::log(v) : v;
}
template <class Op, class T>
void finish(T& to, typename Op::Acc acc, int64_t count, After after)
{
    if constexpr (kReal<T>)
        storeElement(to, applied(after, Op::real(acc, count)));
    else
        Op::finish(to, acc, count);
}

template <class Op, class T>
typename Op::Acc load(T v)
{
    if constexpr (requires { Op::enter(0.f); })
        return Op::enter(loadElement(v));
    else if constexpr (kReal<T>)
        return typename Op::Acc(loadElement(v));
    else
        return typename Op::Acc(v);
}

// A contiguous row joined into one value; several accumulators, so that it vectorizes.
template <class Op, class T>
typename Op::Acc joinRow(T const* x, int64_t n)
{
    using Acc = typename Op::Acc;
    constexpr int kLanes = 8;
    Acc lanes[kLanes];
    for (Acc& lane : lanes)
        lane = Op::first();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int l = 0; l < kLanes; ++l)
            lanes[l] = Op::join(lanes[l], load<Op>(x[i + l]));
    for (; i < n; ++i)
        lanes[0] = Op::join(lanes[0], load<Op>(x[i]));
    for (int l = 1; l < kLanes; ++l)
        lanes[0] = Op::join(lanes[0], lanes[l]);
    return lanes[0];
}

// For the kept indices [begin, end).
template <class Op, class T>
void reduceWith(Loops const& loops, After after, T const* x, T* y, int64_t begin, int64_t end)
{
    using Acc = typename Op::Acc;
    constexpr int64_t kBlock = 256; // columns that are reduced together
    bool const nothing = loops.count == 0;
    y += begin * (loops.innerReduced ? 1 : loops.inner);
    for (int64_t k = begin; k < end; ++k) {
        T const* from = nothing ? x : x + keptOffset(loops, k);
        if (loops.innerReduced) {
            Acc acc = Op::first();
            Counter reduced(loops.reduced);
            if (!nothing)
                do
                    acc = Op::join(acc, joinRow<Op>(from + reduced.offset(loops.reducedStrides), loops.inner));
                while (reduced.next());
            finish<Op>(*y++, acc, loops.count, after);
            continue;
        }
        for (int64_t first = 0; first < loops.inner; first += kBlock) {
            int64_t const width = std::min(kBlock, loops.inner - first);
            Acc acc[kBlock];
            std::fill(acc, acc + width, Op::first());
            Counter reduced(loops.reduced);
            if (!nothing)
                do {
                    T const* row = from + reduced.offset(loops.reducedStrides) + first;
                    for (int64_t i = 0; i < width; ++i)
                        acc[i] = Op::join(acc[i], load<Op>(row[i]));
                } while (reduced.next());
            for (int64_t i = 0; i < width; ++i)
                finish<Op>(*y++, acc[i], loops.count, after);
        }
    }
}

template <class T>
void reduceAs(Attrs const& a, TensorRef const& x, TensorRef const& y, Workers& workers)
{
    if (y.count() == 0)
        return;
    Loops const loops(a, x.dims);
    After const after = a.isLogSumExp() ? After::kNothing : a.after; // its logarithm is the accumulator's
    auto run = [&](auto reduce) {
        inPieces(workers, loops.kept.volume(), x.sizeBytes(),
                 [&](int64_t begin, int64_t end) { reduce(loops, after, x.as<T>(), y.as<T>(), begin, end); });
    };
    auto with = [&]<class Op>(Op) {
        if constexpr (kReal<T>) {
            if (a.before == Before::kAbs)
                return run(reduceWith<Of<Op, Before::kAbs>, T>);
            if (a.before == Before::kSquare)
                return run(reduceWith<Of<Op, Before::kSquare>, T>);
        }
        run(reduceWith<Op, T>);
    };
    if constexpr (kReal<T>)
        if (a.isLogSumExp())
            return run(reduceWith<LogSumExp, T>);
    switch (a.kind) {
    case Kind::kSum:
        return with(Sum<T>());
    case Kind::kProd:
        return with(Product<T>());
    case Kind::kMax:
        return with(Extreme<T, 1>());
    case Kind::kMin:
        return with(Extreme<T, -1>());
    case Kind::kAvg:
        return with(Average<T>());
    }
}

} // namespace

Result<void> runPlain(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    withNumber(x.type, [&](auto element) { reduceAs<decltype(element)>(a, x, y, *args.workers); });
    return {};
}

} // namespace tw::ops::reduce
