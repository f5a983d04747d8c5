// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/one_hot/op.h"

namespace tw::ops::one_hot {

namespace {

// All off, then one store for each index. Elements are moved as bits: T is an unsigned integer of the type's size.
template <class T>
void spread(TensorRef const& indices, T off, T on, TensorRef const& y, int axis)
{
    int64_t const depth = y.dims[axis], outer = y.dims.volume(0, axis), inner = y.dims.volume(axis + 1, y.dims.rank);
    T* to = y.as<T>();
    std::fill(to, to + y.count(), off);
    auto const* from = indices.as<int32_t>();
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
            int64_t const index = from[o * inner + i], d = index < 0 ? index + depth : index;
            if (d >= 0 && d < depth)
                to[(o * depth + d) * inner + i] = on;
        }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &indices = args.inputs[0], &values = args.inputs[1], &y = args.outputs[0];
    int const axis = node.attrsAs<Attrs>().axisIn(y.dims.rank);
    if (y.type == DataType::kBool)
        spread<uint8_t>(indices, values.as<uint8_t>()[0] != 0, values.as<uint8_t>()[1] != 0, y, axis);
    else if (sizeOf(y.type) == 4)
        spread(indices, values.as<uint32_t>()[0], values.as<uint32_t>()[1], y, axis);
    else if (sizeOf(y.type) == 2)
        spread(indices, values.as<uint16_t>()[0], values.as<uint16_t>()[1], y, axis);
    else
        spread(indices, values.as<uint8_t>()[0], values.as<uint8_t>()[1], y, axis);
    return {};
}

constexpr PlainTactic kPlain{"one_hot_any_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::one_hot
