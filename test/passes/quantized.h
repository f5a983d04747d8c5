// SPDX-License-Identifier: Apache-2.0
// Pieces of graphs with Q and DQ.
#pragma once

#include <string>
#include <vector>

#include "ops/dequantize/op.h"
#include "ops/quantize/op.h"
#include "pass_test.h"

namespace tw::test {

inline ir::Value* quantized(GraphMaker& m, ir::Value* x, double scale, std::string const& name)
{
    return m.add(ops::quantize::def(), ops::quantize::Attrs(), {x, m.constant(name + ".scale", {}, {scale})}, name);
}
inline ir::Value* dequantized(GraphMaker& m, ir::Value* x, double scale, std::string const& name)
{
    return m.add(ops::dequantize::def(), ops::dequantize::Attrs(), {x, m.constant(name + ".scale", {}, {scale})}, name);
}
inline ir::Value* faked(GraphMaker& m, ir::Value* x, double scale, std::string const& name)
{
    return dequantized(m, quantized(m, x, scale, name + ".q"), scale, name + ".dq");
}

// Integers -9 .. 9 behind dequantize; `count` scales along `axis`, or one.
inline ir::Value* weights(GraphMaker& m, Extents const& dims, int axis, std::string const& name)
{
    std::vector<double> values, scales;
    for (int64_t i = 0; i < dims.volume(); ++i)
        values.push_back(double(i * 7 % 19) - 9);
    for (int64_t i = 0; i < (axis < 0 ? 1 : dims[axis]); ++i)
        scales.push_back(i % 2 ? 0.0625 : 0.125);
    ir::Value* const w = m.constant(name, dims, values, DataType::kInt8);
    ir::Value* const s = m.constant(name + ".scale", axis < 0 ? Extents{} : Extents{dims[axis]}, scales);
    return m.add(ops::dequantize::def(), ops::dequantize::Attrs(axis), {w, s}, name + ".dq");
}

} // namespace tw::test
