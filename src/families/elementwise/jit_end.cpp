// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/jit_end.h"

#include "tactic/cpu_tactic.h"

namespace tw::ops {

JitEnd::JitEnd(Problem const& p, Epilogue const& epilogue, double factors, kernels::jit::Isa isa)
    : sumsIntegers_(isQuantized(p.inputs[0].type))
{
    auto const has = [&](size_t i) { return i < p.inputs.size() && p.inputs[i].present; };
    integers_.bias = has(Epilogue::kBias);
    if (has(Epilogue::kResidual))
        integers_.residual = p.inputs[Epilogue::kResidual].type;
    integers_.store = p.outputs[0].type;
    if (!sumsIntegers_) {
        floats_ = jitEnd(epilogue);
        return;
    }
    integers_.oneScale = p.inputs[Epilogue::kScale].dims.volume() == 1;
    integers_.activation = jitActivation(epilogue.activation);
    integers_.outputScale = has(Epilogue::kOutputScale);
    integers_.bounded = staysBounded(p, epilogue, factors);
    integers_.innerScale = has(Epilogue::kInnerScale);
    if (has(Epilogue::kTable))
        integers_.table = kernels::jit::byteTableOf(thisCpu(), isa);
}

void JitEnd::add(kernels::jit::GemmKernelSpec& spec) const
{
    if (sumsIntegers_)
        return addEnd(spec, integers_);
    if (integers_.bias)
        spec.epilogue.push_back(kernels::jit::EpilogueOp::kBias);
    addEnd(spec, floats_, hasResidual());
}

void JitEnd::set(kernels::jit::GemmArgs& tile, RunArgs const& args, int64_t first) const
{
    auto number = [&](size_t i) {
        return i < args.inputs.size() && args.inputs[i].data ? *args.inputs[i].as<float>() : 1.0F;
    };
    tile.c = args.outputs[0].as<char>() + first * yBytes();
    if (integers_.bias)
        tile.bias = args.inputs[Epilogue::kBias].as<float>() + first;
    if (hasResidual())
        tile.residual = args.inputs[Epilogue::kResidual].as<char>() + first * residualBytes();
    if (!sumsIntegers_)
        return;
    tile.scale = args.inputs[Epilogue::kScale].as<float>() + (integers_.oneScale ? 0 : first);
    tile.numbers = {number(Epilogue::kResidualScale), number(Epilogue::kOutputScale), number(Epilogue::kInnerScale),
                    integers_.table ? args.inputs[Epilogue::kTable].as<int8_t>() : nullptr};
}

} // namespace tw::ops
