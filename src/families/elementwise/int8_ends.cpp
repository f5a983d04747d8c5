// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/int8_ends.h"

#include "families/elementwise/activate_jit.h"
#include "families/elementwise/int8_bounds.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops {

Int8Ends::Int8Ends(Problem const& p, Epilogue const& epilogue, double factors, kernels::jit::Isa isa)
{
    auto const has = [&](size_t i) { return i < p.inputs.size() && p.inputs[i].present; };
    end_.oneScale = p.inputs[Epilogue::kScale].dims.volume() == 1;
    end_.bias = has(Epilogue::kBias);
    if (has(Epilogue::kResidual))
        end_.residual = p.inputs[Epilogue::kResidual].type;
    end_.activation = jitActivation(epilogue.activation);
    end_.outputScale = has(Epilogue::kOutputScale);
    end_.store = p.outputs[0].type;
    end_.bounded = staysBounded(p, epilogue, factors);
    end_.innerScale = has(Epilogue::kInnerScale);
    if (has(Epilogue::kTable))
        end_.table = kernels::jit::byteTableOf(thisCpu(), isa);
}

void Int8Ends::set(kernels::jit::GemmArgs& tile, RunArgs const& args, int64_t first) const
{
    auto number = [&](size_t i) {
        return i < args.inputs.size() && args.inputs[i].data ? *args.inputs[i].as<float>() : 1.0F;
    };
    tile.c = args.outputs[0].as<char>() + first * yBytes();
    tile.scale = args.inputs[Epilogue::kScale].as<float>() + (end_.oneScale ? 0 : first);
    if (end_.bias)
        tile.bias = args.inputs[Epilogue::kBias].as<float>() + first;
    if (hasResidual())
        tile.residual = args.inputs[Epilogue::kResidual].as<char>() + first * residualBytes();
    tile.numbers = {number(Epilogue::kResidualScale), number(Epilogue::kOutputScale), number(Epilogue::kInnerScale),
                    end_.table ? args.inputs[Epilogue::kTable].as<int8_t>() : nullptr};
}

} // namespace tw::ops
