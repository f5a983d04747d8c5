// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/element.h"
#include "ops/cumulative_sum/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::cumulative_sum {

namespace {

struct Reals
{
    using Sum = double;
    static double load(auto v) { return loadElement(v); }
    static void store(float& y, double v) { y = float(v); }
    static void store(auto& y, double v) { storeElement(y, TensorRef::roundedToOdd(v)); }
};
struct Integers // unsigned ones wrap
{
    using Sum = uint32_t;
    static uint32_t load(uint32_t v) { return v; }
    static void store(uint32_t& y, uint32_t v) { y = v; }
};

constexpr int64_t kSums = 32; // side by side: independent of each other, as an addition waits for the one before

// Lines of n elements, `along` apart; line c begins at c * between. count <= kSums.
template <class Kind, class T>
void sumLines(Attrs const& a, T const* x, T* y, int64_t n, int64_t along, int64_t between, int64_t count)
{
    typename Kind::Sum sum[kSums] = {};
    for (int64_t p = 0; p < n; ++p) {
        int64_t const at = (a.reverse ? n - 1 - p : p) * along;
        for (int64_t c = 0; c < count; ++c) {
            auto const before = sum[c];
            sum[c] = before + Kind::load(x[at + c * between]);
            Kind::store(y[at + c * between], a.exclusive ? before : sum[c]);
        }
    }
}

template <class Kind, class T>
void sumAll(Attrs const& a, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int const axis = int(a.axis);
    int64_t const n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank);
    int64_t const lines = x.dims.volume(0, axis) * inner;
    inPieces(*args.workers, lines, y.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end;) {
            // Lines of one outer index lie side by side; without inner ones they follow each other.
            int64_t const column = line % inner, left = inner == 1 ? end - line : std::min(inner - column, end - line);
            int64_t const count = std::min(left, kSums), at = line / inner * n * inner + column;
            if (inner == 1)
                sumLines<Kind>(a, x.as<T>() + at, y.as<T>() + at, n, 1, n, count);
            else
                sumLines<Kind>(a, x.as<T>() + at, y.as<T>() + at, n, inner, 1, count);
            line += count;
        }
    });
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    DataType const type = args.outputs[0].type;
    if (args.outputs[0].count() == 0)
        return {};
    if (isFloating(type))
        withFloat(type, [&](auto element) { sumAll<Reals, decltype(element)>(a, args); });
    else
        sumAll<Integers, uint32_t>(a, args);
    return {};
}

constexpr PlainTactic kPlain{"cumulative_sum_any_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::cumulative_sum
