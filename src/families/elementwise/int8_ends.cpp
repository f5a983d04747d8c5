// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/int8_ends.h"

#include "families/elementwise/activate_jit.h"
#include "families/elementwise/int8_bounds.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops {

namespace {

using kernels::jit::Int8Type;

Int8Type int8TypeOf(DataType t)
{
    return isQuantized(t) ? Int8Type::kInt8 : t == DataType::kHalf ? Int8Type::kHalf : Int8Type::kFloat;
}

} // namespace

Int8Ends::Int8Ends(Problem const& p, Epilogue const& epilogue, double factors, kernels::jit::Isa isa)
{
    auto const has = [&](size_t i) { return i < p.inputs.size() && p.inputs[i].present; };
    epilogue_.oneScale = p.inputs[Epilogue::kScale].dims.volume() == 1;
    epilogue_.bias = has(Epilogue::kBias);
    if (has(Epilogue::kResidual))
        epilogue_.residual = int8TypeOf(p.inputs[Epilogue::kResidual].type);
    epilogue_.activation = jitActivation(epilogue.activation);
    epilogue_.outputScale = has(Epilogue::kOutputScale);
    epilogue_.store = int8TypeOf(p.outputs[0].type);
    epilogue_.bounded = staysBounded(p, epilogue, factors);
    epilogue_.innerScale = has(Epilogue::kInnerScale);
    if (has(Epilogue::kTable))
        epilogue_.table = kernels::jit::byteTableOf(thisCpu(), isa);
}

kernels::jit::Int8Epilogue Int8Ends::epilogue(bool masked) const
{
    kernels::jit::Int8Epilogue e = epilogue_;
    e.masked = masked;
    return e;
}

kernels::jit::Int8Output Int8Ends::output(RunArgs const& args, int64_t first) const
{
    auto number = [&](size_t i) {
        return i < args.inputs.size() && args.inputs[i].data ? *args.inputs[i].as<float>() : 1.0F;
    };
    kernels::jit::Int8Output out;
    out.c = args.outputs[0].as<char>() + first * yBytes();
    out.scale = args.inputs[Epilogue::kScale].as<float>() + (epilogue_.oneScale ? 0 : first);
    if (epilogue_.bias)
        out.bias = args.inputs[Epilogue::kBias].as<float>() + first;
    if (hasResidual())
        out.residual = args.inputs[Epilogue::kResidual].as<char>() + first * residualBytes();
    out.residualScale = number(Epilogue::kResidualScale);
    out.outputScale = number(Epilogue::kOutputScale);
    out.innerScale = number(Epilogue::kInnerScale);
    if (epilogue_.table)
        out.table = args.inputs[Epilogue::kTable].as<int8_t>();
    return out;
}

} // namespace tw::ops
