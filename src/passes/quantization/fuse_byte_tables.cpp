// SPDX-License-Identifier: Apache-2.0
// Functions of one INT8 number, behind a node of sums that makes it, become a part of its epilogue.
//   pointwise(conv(x, w, b)), i8 to i8        ->  conv(x, w, b; clip)       bounds, as ReLU and Clip of one step are
//                                                 conv(x, w, b, r; relu)    no bound but 0, in front of a scale of the result
//                                                 conv(x, w, b; step, clip) another step, too
//                                                 conv(x, w, b; table)      any other one
// for convolutions and matrix products of i8. What the function is its 256 values tell, which the reference makes. Expects
// Form::kFused; stands after fuse_pointwise. Bounds are for CPUs. A table is for GPUs, where it lies in the first cache, and
// CPUs with AVX-512, where it lies in registers; there it is cheaper than another step. Leaves alone: results that others
// read too, functions of several inputs (also of scales that refit may change).
#include <algorithm>
#include <cmath>
#include <optional>

#include "interp/interp.h"
#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pointwise/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::Epilogue;

bool isByteFunction(ir::Node const& n)
{
    return n.op == &ops::pointwise::def() && n.inputs.size() == 1 && isQuantized(n.inputs[0]->type) &&
           isQuantized(n.outputs[0]->type);
}

// The node of sums that alone makes what `n`, a function of one INT8 number, reads; else null.
ir::Node* sumBefore(ir::Graph const& g, ir::Node const& n)
{
    ir::Node* const sum = onlyProducer(g, n.inputs[0]);
    bool const isSum = sum && (sum->op == &ops::convolution::def() || sum->op == &ops::matrix_multiply::def());
    return isSum && ops::sumsIntegers(*sum) && !ops::hasInput(*sum, Epilogue::kTable) && canJoin(*sum, n) ? sum
                                                                                                          : nullptr;
}

// What the node makes of -128 .. 127.
Result<Tensor> tableOf(ir::Node const& n)
{
    constexpr int kBytes = 256;
    Extents dims;
    for (int d = 0; d < n.inputs[0]->rank(); ++d)
        dims.push(d + 1 < n.inputs[0]->rank() ? 1 : kBytes);
    Tensor bytes(DataType::kInt8, dims);
    for (int i = 0; i < kBytes; ++i)
        bytes.ref().set(i, i - 128);
    ir::Graph alone;
    ir::Value* const x = alone.addInput("bytes", DataType::kInt8, ir::Shape(dims.begin(), dims.end()));
    TW_ASSIGN(ir::Node * copy, alone.addNode(*n.op, n.attrs->clone(), {x}, n.name));
    TW_ASSIGN(std::vector<Tensor> made, interp::runNode(*copy, {bytes.ref()}));
    return std::move(made[0]);
}

// A function f(v) = v * step, rounded half to even and held between two bounds.
struct Bounded
{
    float step = 1;
    int low = -128, high = 127;
};

// Whether the values are those of such a function, as sums of i8 compute it.
bool isTable(Bounded const& f, std::span<int8_t const> values)
{
    for (int v = -128; v <= 127; ++v)
        if (std::clamp(std::nearbyint(float(v) * f.step), float(f.low), float(f.high)) !=
            float(values[size_t(v + 128)]))
            return false;
    return true;
}

std::optional<Bounded> boundedOf(std::span<int8_t const> values)
{
    auto const [low, high] = std::minmax_element(values.begin(), values.end());
    Bounded f{1, *low, *high};
    if (isTable(f, values))
        return f;
    double least = 0, most = HUGE_VAL; // steps that every value allows
    for (int v = -128; v <= 127; ++v) {
        int const sign = v < 0 ? -1 : 1, x = sign * v, y = sign * values[size_t(v + 128)];
        if (x > 0 && y < (sign > 0 ? f.high : -f.low))
            most = std::min(most, (y + 0.5) / x);
        if (x > 0 && y > (sign > 0 ? f.low : -f.high))
            least = std::max(least, (y - 0.5) / x);
    }
    f.step = float((least + most) / 2);
    return isTable(f, values) ? std::optional(f) : std::nullopt;
}

// Whether nothing of the sum's own stands in the way: a step comes in front of its residual, bounds are its activation.
bool mayEndWith(ir::Node& sum, Bounded const& f, bool takesTables)
{
    bool const isFree = !epilogueOf(*sum.attrs, sum).activation.any() && !ops::hasInput(sum, Epilogue::kInnerScale) &&
                        !ops::hasInput(sum, Epilogue::kOutputScale);
    return isFree && (f.step == 1 || (!takesTables && !ops::hasInput(sum, Epilogue::kResidual)));
}

// Whether it is ReLU of one step: max(0, ) changes places with a scale of the result, which is positive, and with rounding.
bool mayEndWithRelu(ir::Node& sum, Bounded const& f)
{
    if (epilogueOf(*sum.attrs, sum).activation.any() || f.step != 1 || f.low != 0 || f.high != 127)
        return false;
    if (!ops::hasInput(sum, Epilogue::kOutputScale))
        return true;
    auto const& scale = sum.inputs[Epilogue::kOutputScale]->constant;
    return scale && *scale->data->as<float>() > 0;
}

void endWith(ir::Graph& g, ir::Node& sum, Bounded const& f, std::string const& name)
{
    epilogueOf(*sum.attrs, sum).activation =
        ops::FusedActivation(ops::activation::Kind::kClip, float(f.low), float(f.high));
    if (f.step == 1)
        return;
    sum.inputs.resize(size_t(Epilogue::kInnerScale) + 1);
    sum.inputs[Epilogue::kInnerScale] = g.addConstant(name + ".step", DataType::kFloat, Extents{1}, &f.step);
}

} // namespace

Result<bool> fuseByteTables(ir::Graph& g, PassContext const& ctx)
{
    TargetInfo::Cpu const* const cpu = ctx.target.cpu();
    bool const takesTables = !cpu || cpu->isa == TargetInfo::Isa::kAvx512;
    return changeEach(g, isByteFunction, [&](ir::Node& n) -> Result<bool> {
        ir::Node* const sum = sumBefore(g, n);
        if (!sum)
            return false;
        TW_ASSIGN(Tensor const table, tableOf(n));
        std::optional<Bounded> const bounded = boundedOf({table.ref().as<int8_t>(), 256});
        if (cpu && bounded && mayEndWith(*sum, *bounded, takesTables)) {
            endWith(g, *sum, *bounded, n.name);
        } else if (cpu && bounded && mayEndWithRelu(*sum, *bounded)) {
            epilogueOf(*sum->attrs, *sum).activation = ops::FusedActivation(ops::activation::Kind::kRelu);
        } else if (takesTables) {
            sum->inputs.resize(Epilogue::kEnd);
            sum->inputs[Epilogue::kTable] =
                g.addConstant(n.name + ".table", DataType::kInt8, Extents{256}, table.data());
        } else {
            return false;
        }
        joinOrigins(*sum, *sum, n);
        sum->outputs[0]->name = n.outputs[0]->name;
        g.replaceAllUses(n.outputs[0], sum->outputs[0]);
        g.eraseNode(&n);
        return true;
    });
}

} // namespace tw::passes
