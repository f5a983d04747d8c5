// SPDX-License-Identifier: Apache-2.0
#include "tactic/sparsity.h"

namespace tw::ops {

namespace {

// Over [outer, groups, 4, inner]; `magnitude` clears the sign bit, so that both zeros are 0.
template <class Bits>
bool follows(Bits const* w, int64_t outer, int64_t groups, int64_t inner, Bits magnitude)
{
    for (int64_t g = 0; g < outer * groups; ++g) {
        Bits const* const group = w + g * kSparseGroup * inner;
        for (int64_t i = 0; i < inner; ++i) {
            int nonZeros = 0;
            for (int j = 0; j < kSparseGroup; ++j)
                nonZeros += (group[j * inner + i] & magnitude) != 0;
            if (nonZeros > kSparseNonZeros)
                return false;
        }
    }
    return true;
}

} // namespace

bool isTwoOfFour(TensorRef const& weights, int axis)
{
    Extents const& d = weights.dims;
    if (!weights.data || weights.format != Format::kLinear || axis < 0 || axis >= d.rank || weights.count() == 0 ||
        d[axis] % kSparseGroup != 0)
        return false;
    int64_t const outer = d.volume(0, axis), groups = d[axis] / kSparseGroup, inner = d.volume(axis + 1, d.rank);
    NumberType const type = numberType(weights.type);
    if (type.kind == NumberKind::kLogic)
        return false;
    uint32_t const all = uint32_t(-1) >> (32 - type.bits), mask = isFloating(weights.type) ? all >> 1 : all; // no sign
    if (type.bits == 32)
        return follows<uint32_t>(weights.as<uint32_t>(), outer, groups, inner, mask);
    if (type.bits == 16)
        return follows<uint16_t>(weights.as<uint16_t>(), outer, groups, inner, uint16_t(mask));
    return follows<uint8_t>(weights.as<uint8_t>(), outer, groups, inner, uint8_t(mask));
}

Error notTwoOfFour(std::string const& layer, char const* what)
{
    return invalidArgument(
        "layer '" + layer + "' was built for weights that follow 2:4 (BuilderFlag::kSPARSE_WEIGHTS): " + what +
        ", have more than two elements other than zero among four neighbours. Give it weights with the "
        "pattern, or build the engine without that flag");
}

} // namespace tw::ops
