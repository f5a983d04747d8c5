// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/round.h"
#include "families/elementwise/pointwise_jit.h"
#include "ops/elementwise/op.h"
#include "tactic/blocks.h"
#include "tactic/broadcast.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::elementwise {

namespace {

template <class In, class Out>
using Loop = void (*)(In const* a, In const* b, Out* y, int64_t n);

// F is a lambda without captures: the loop is compiled for it.
template <class In, class Out, class F>
constexpr Loop<In, Out> loopOf(F)
{
    return [](In const* a, In const* b, Out* y, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
            y[i] = Out(F{}(a[i], b[i]));
    };
}

template <class T>
Loop<T, uint8_t> comparison(Operation operation)
{
    constexpr Loop<T, uint8_t> kLoops[] = {loopOf<T, uint8_t>([](T a, T b) { return a == b; }),
                                           loopOf<T, uint8_t>([](T a, T b) { return a > b; }),
                                           loopOf<T, uint8_t>([](T a, T b) { return a < b; })};
    return kLoops[int(operation) - int(Operation::kEqual)];
}

// Up to kFloorDiv.
Loop<float, float> realLoop(Operation operation)
{
    using T = float;
    constexpr Loop<T, T> kLoops[] = {
        loopOf<T, T>([](T a, T b) { return a + b; }),
        loopOf<T, T>([](T a, T b) { return a * b; }),
        loopOf<T, T>([](T a, T b) { return (a > b) | (a != a) ? a : b; }), // a NaN on either side wins
        loopOf<T, T>([](T a, T b) { return (a < b) | (a != a) ? a : b; }),
        loopOf<T, T>([](T a, T b) { return a - b; }),
        loopOf<T, T>([](T a, T b) { return a / b; }),
        loopOf<T, T>([](T a, T b) { return std::pow(a, b); }),
        // In double, as a quotient rounded to float may have reached the next integer.
        loopOf<T, T>([](T a, T b) { return std::floor(double(a) / double(b)); }),
    };
    return kLoops[int(operation)];
}

int32_t wrap(int64_t v)
{
    return int32_t(uint32_t(uint64_t(v)));
}
int64_t floorQuotient(int64_t a, int64_t b)
{
    int64_t const q = a / b;
    return q - (q * b != a && (a < 0) != (b < 0));
}

// i32 wraps; on i8 nothing here can leave 32 bits.
Loop<int32_t, int32_t> wholeLoop(Operation operation)
{
    using T = int32_t;
    constexpr Loop<T, T> kLoops[] = {
        loopOf<T, T>([](T a, T b) { return T(uint32_t(a) + uint32_t(b)); }),
        loopOf<T, T>([](T a, T b) { return T(uint32_t(a) * uint32_t(b)); }),
        loopOf<T, T>([](T a, T b) { return a > b ? a : b; }),
        loopOf<T, T>([](T a, T b) { return a < b ? a : b; }),
        loopOf<T, T>([](T a, T b) { return T(uint32_t(a) - uint32_t(b)); }),
        loopOf<T, T>([](T a, T b) { return b == 0 ? 0 : wrap(int64_t(a) / b); }),
        nullptr, // powers
        loopOf<T, T>([](T a, T b) { return b == 0 ? 0 : wrap(floorQuotient(a, b)); }),
    };
    return kLoops[int(operation)];
}

// The operations of i8 whose exact result is not an integer.
Loop<int32_t, int32_t> smallLoop(Operation operation)
{
    using T = int32_t;
    if (operation == Operation::kDiv)
        return loopOf<T, T>([](T a, T b) { return b == 0 ? 0 : T(saturateToInt8(double(a) / double(b))); });
    if (operation == Operation::kPow)
        return loopOf<T, T>([](T a, T b) { return T(saturateToInt8(std::pow(double(a), double(b)))); });
    return wholeLoop(operation);
}

Loop<uint8_t, uint8_t> logicLoop(Operation operation)
{
    using T = uint8_t;
    constexpr Loop<T, T> kLoops[] = {loopOf<T, T>([](T a, T b) { return (a != 0) & (b != 0); }),
                                     loopOf<T, T>([](T a, T b) { return (a != 0) | (b != 0); }),
                                     loopOf<T, T>([](T a, T b) { return (a != 0) ^ (b != 0); })};
    return kLoops[int(operation) - int(Operation::kAnd)];
}

// Powers with the same exponent everywhere; what std::pow gives, to its last bits.
Loop<float, float> powerLoop(float exponent)
{
    constexpr float kInf = std::numeric_limits<float>::infinity();
    if (exponent == 2)
        return loopOf<float, float>([](float a, float) { return a * a; });
    if (exponent == 3)
        return loopOf<float, float>([](float a, float) { return float(double(a) * double(a) * double(a)); });
    if (exponent == 1)
        return loopOf<float, float>([](float a, float) { return a; });
    if (exponent == -1)
        return loopOf<float, float>([](float a, float) { return 1 / a; });
    if (exponent == 0.5f) // 0 and infinity of -0 and -infinity
        return loopOf<float, float>([](float a, float) { return a == -kInf ? kInf : std::sqrt(a + 0.f); });
    if (exponent == -0.5f)
        return loopOf<float, float>([](float a, float) { return a == -kInf ? 0.f : 1 / std::sqrt(a + 0.f); });
    return realLoop(Operation::kPow);
}

// Calls block(y, a, b, n) with the first element in each tensor, for blocks of at most kBlock elements of a row.
template <class Block>
void forEachBlock(Workers& workers, BroadcastLoop const& loop, Block const& block)
{
    constexpr int64_t kPart = 64 * kBlock; // of a row, that one worker takes
    int64_t const row = loop.rowLength(), aStep = loop.rowStride(0), bStep = loop.rowStride(1);
    int64_t const rows = loop.rows(), parts = divideUp(row, kPart);
    auto const blocks = [&](int64_t from, int64_t to, int64_t y, int64_t const* at) {
        for (int64_t e = from; e < to; e += kBlock)
            block(y + e, at[0] + e * aStep, at[1] + e * bStep, std::min(kBlock, to - e));
    };
    if (parts == 1) {
        inPieces(workers, rows, 4 * rows * row, [&](int64_t begin, int64_t end) {
            loop.forRows(begin, end, [&](int64_t y, int64_t const* at) { blocks(0, row, y, at); });
        });
        return;
    }
    inPieces(workers, rows * parts, 4 * rows * row, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end;) {
            int64_t const r = i / parts, first = i % parts, last = std::min(parts, first + end - i);
            int64_t const from = first * kPart, to = std::min(row, last * kPart);
            i += last - first;
            loop.forRows(r, r + 1, [&](int64_t y, int64_t const* at) { blocks(from, to, y, at); });
        }
    });
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    Operation const operation = node.attrsAs<Attrs>().operation;
    TensorRef const &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    BroadcastLoop const loop = broadcastLoop(y.dims, {&a.dims, &b.dims});
    int64_t const aStep = loop.rowStride(0), bStep = loop.rowStride(1);
    if (isFloating(a.type)) {
        auto const compare = isComparison(operation) ? comparison<float>(operation) : nullptr;
        bool const power = operation == Operation::kPow && b.count() == 1;
        auto const compute = compare ? nullptr : power ? powerLoop(float(b.get(0))) : realLoop(operation);
        forEachBlock(*args.workers, loop, [&](int64_t yi, int64_t ai, int64_t bi, int64_t n) {
            float aBlock[kBlock], bBlock[kBlock], yBlock[kBlock];
            float const* av = loadFloats(a.type, a.data, ai, aStep, n, aBlock);
            float const* bv = loadFloats(b.type, b.data, bi, bStep, n, bBlock);
            if (compare) {
                compare(av, bv, y.as<uint8_t>() + yi, n);
            } else {
                float* to = floatsAt(y.type, y.data, yi, yBlock);
                compute(av, bv, to, n);
                storeFloats(y.type, y.data, yi, n, to);
            }
        });
    } else if (a.type == DataType::kBool) {
        auto const compute = logicLoop(operation);
        forEachBlock(*args.workers, loop, [&](int64_t yi, int64_t ai, int64_t bi, int64_t n) {
            uint8_t aBlock[kBlock], bBlock[kBlock];
            compute(loadBytes(a.data, ai, aStep, n, aBlock), loadBytes(b.data, bi, bStep, n, bBlock),
                    y.as<uint8_t>() + yi, n);
        });
    } else {
        auto const compare = isComparison(operation) ? comparison<int32_t>(operation) : nullptr;
        auto const compute = compare ? nullptr : isQuantized(a.type) ? smallLoop(operation) : wholeLoop(operation);
        forEachBlock(*args.workers, loop, [&](int64_t yi, int64_t ai, int64_t bi, int64_t n) {
            int32_t aBlock[kBlock], bBlock[kBlock], yBlock[kBlock];
            int32_t const* av = loadInts(a.type, a.data, ai, aStep, n, aBlock);
            int32_t const* bv = loadInts(b.type, b.data, bi, bStep, n, bBlock);
            if (compare) {
                compare(av, bv, y.as<uint8_t>() + yi, n);
            } else {
                int32_t* to = intsAt(y.type, y.data, yi, yBlock);
                compute(av, bv, to, n);
                storeInts(y.type, y.data, yi, n, to);
            }
        });
    }
    return {};
}

constexpr PlainTactic kPlain{"elementwise_any_plain_cpu", 1, run};

// One step of an emitted expression.
Result<PointwiseSpec> specOf(Problem const& p)
{
    return stepSpec(stepOf(p.node->attrsAs<Attrs>().operation), 2);
}

} // namespace

extern constinit TacticList const cpuTactics = kPointwiseTactics<"elementwise", specOf, kPlain>;

} // namespace tw::ops::elementwise
