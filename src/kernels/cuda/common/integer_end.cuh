// SPDX-License-Identifier: Apache-2.0
// What becomes of exact sums of i8 (docs/adr/0012-int8-in-the-graph.md): FP32, each step rounded by itself, so that
// results are the same bits on every device. After integerEndConstants():
//   type EndElement (of y), EndResidual (of the residual; i8 where there is none); float activate(float)
//   bool END_BIAS, END_INNER, END_RESIDUAL, END_OUTPUT, END_TABLE
//   bool END_EXACT: of an activation that is not, the product by the scale need not be rounded before the bias is added
#pragma once

#include "kernels/cuda/common/bytes.cuh"
#include "kernels/cuda/common/epilogue_params.h"

namespace tw::cuda {

TW_INLINE float endFloat(i8 v)
{
    return float(v);
}
TW_INLINE float endFloat(f16 v)
{
    return halfToFloat(v);
}
TW_INLINE float endFloat(float v)
{
    return v;
}

// One number for the whole kernel; 1 where there is none.
struct EndNumbers
{
    float inner = 1, residual = 1, output = 1;
};
TW_INLINE EndNumbers endNumbers(IntegerEndArgs const& e)
{
    EndNumbers n;
    if constexpr (END_INNER)
        n.inner = __ldg(e.innerScale);
    if constexpr (END_RESIDUAL && sizeof(EndResidual) == 1)
        n.residual = __ldg(e.residualScale);
    if constexpr (END_OUTPUT)
        n.output = __ldg(e.outputScale);
    return n;
}
TW_INLINE float endScale(IntegerEndArgs const& e, i32 channel)
{
    return __ldg(e.scale + i64(channel) * e.scaleStep);
}
TW_INLINE float endBias(IntegerEndArgs const& e, i32 channel)
{
    if constexpr (END_BIAS)
        return __ldg(e.bias + channel);
    else
        return 0;
}

// What is rounded to y: of a sum, with its channel's scale and bias and its residual, or that as a float (END_RESIDUAL).
template <class Residual>
TW_INLINE float endOf(i32 sum, float scale, float bias, Residual residual, EndNumbers const& n)
{
    constexpr bool FUSED = END_BIAS && !END_EXACT && !END_INNER;
    float t = FUSED ? fmaf(__int2float_rn(sum), scale, bias) : __fmul_rn(__int2float_rn(sum), scale);
    if constexpr (END_BIAS && !FUSED)
        t = __fadd_rn(t, bias);
    if constexpr (END_INNER)
        t = __fmul_rn(float(toByte(t)), n.inner);
    if constexpr (END_RESIDUAL) {
        if constexpr (sizeof(EndResidual) == 1)
            t = __fadd_rn(t, __fmul_rn(endFloat(residual), n.residual));
        else
            t = __fadd_rn(t, endFloat(residual));
    }
    t = activate(t);
    if constexpr (END_OUTPUT)
        t = __fmul_rn(t, n.output);
    return t;
}
// Of an i8 y: the byte that is stored, -128 .. 127.
TW_INLINE i32 endByte(float t, i8 const* table)
{
    i32 const y = toByte(t);
    if constexpr (END_TABLE)
        return __ldg(table + y + 128);
    else
        return y;
}
TW_INLINE void endStore(EndElement* to, float t, i8 const* table)
{
    if constexpr (sizeof(EndElement) == 1)
        *reinterpret_cast<i8*>(to) = i8(endByte(t, table));
    else if constexpr (sizeof(EndElement) == 2)
        reinterpret_cast<f16*>(to)->bits = floatToHalf(t).bits;
    else
        *reinterpret_cast<float*>(to) = t;
}

} // namespace tw::cuda
