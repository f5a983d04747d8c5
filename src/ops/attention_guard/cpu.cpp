// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/attention_guard/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::attention_guard {

namespace {

template <class U>
bool isNan(U x, U exponent)
{
    return U(x & (exponent | (exponent - 1))) > exponent;
}

// Whether element d of a head has a value that is no finite number.
template <class U>
bool isBroken(Geometry const& g, RunArgs const& args, Attrs const& a, int64_t b, int64_t h, int64_t d, U exponent)
{
    if (isQuantized(args.inputs[1].type))
        return false;
    U const* const v = args.inputs[1].as<U>() + g.v.offset + h / a.headsPerKey * g.v.head + d;
    auto const numbers = [&](int input) { return attention::elementsOf<int32_t>(args.inputs, input); };
    attention::Table const table{.columns = g.columns, .pages = numbers(g.pagesInput), .blocks = g.blocks};
    int64_t const keys = attention::lengthOf(numbers(g.lengthsInput), b, g.columns);
    for (int64_t j = 0; j < keys; ++j)
        if (U const x = v[table.image(b, j) * g.v.batch + table.row(j) * g.v.row]; (x & exponent) == exponent)
            return true;
    return false;
}

template <class U>
void guardRow(Geometry const& g, RunArgs const& args, Attrs const& a, int64_t row)
{
    int64_t const width = a.heads * a.valueSize, b = a.rowsFirst ? row % g.batch : row / g.rows;
    U const* const y = args.inputs[0].as<U>() + row * width;
    U* const z = args.outputs[0].as<U>() + row * width;
    U const exponent = U(exponentOf(args.inputs[0].type)), nan = U(nanOf(args.inputs[0].type));
    U any = 0;
    for (int64_t i = 0; i < width; ++i)
        any |= U(isNan(y[i], exponent));
    std::memcpy(z, y, size_t(width) * sizeof(U));
    for (int64_t i = 0; any && i < width; ++i)
        if (isNan(y[i], exponent))
            z[i] = isBroken<U>(g, args, a, b, i / a.valueSize, i % a.valueSize, exponent) ? nan : U(0);
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    Geometry const g = geometryOf(a, args.inputs);
    TensorRef const& y = args.inputs[0];
    bool const isWide = sizeOf(y.type) == 4;
    eachInPieces(*args.workers, g.batch * g.rows, y.count() * sizeOf(y.type), [&](int64_t row) {
        isWide ? guardRow<uint32_t>(g, args, a, row) : guardRow<uint16_t>(g, args, a, row);
    });
    return {};
}

constexpr PlainTactic kPlain{"attention_guard_any_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::attention_guard
