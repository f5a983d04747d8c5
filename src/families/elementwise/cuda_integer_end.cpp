// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_epilogue.h"

namespace tw::ops {

cuda::IntegerEnd integerEndOf(Problem const& p, Epilogue const& epilogue)
{
    auto const has = [&](size_t i) { return i < p.inputs.size() && p.inputs[i].present; };
    cuda::IntegerEnd e;
    e.store = p.outputs[0].type;
    e.bias = has(Epilogue::kBias);
    e.residual = has(Epilogue::kResidual);
    if (e.residual)
        e.residualType = p.inputs[Epilogue::kResidual].type;
    e.innerScale = has(Epilogue::kInnerScale);
    e.outputScale = has(Epilogue::kOutputScale);
    e.table = has(Epilogue::kTable);
    e.activation = epilogueActivation(epilogue.activation, e.store);
    return e;
}

cuda::IntegerEndArgs integerEndArgs(RunArgs const& args)
{
    auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    cuda::IntegerEndArgs e;
    TensorRef const scale = optional(Epilogue::kScale);
    e.scale = scale.as<float>();
    e.scaleStep = scale.count() == 1 ? 0 : 1;
    e.bias = optional(Epilogue::kBias).as<float>();
    e.residual = optional(Epilogue::kResidual).data;
    e.innerScale = optional(Epilogue::kInnerScale).as<float>();
    e.residualScale = optional(Epilogue::kResidualScale).as<float>();
    e.outputScale = optional(Epilogue::kOutputScale).as<float>();
    e.table = optional(Epilogue::kTable).as<int8_t>();
    return e;
}

} // namespace tw::ops
