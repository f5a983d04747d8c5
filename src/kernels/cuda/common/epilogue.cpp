// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/epilogue.h"

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda {

std::string epilogueFunction(Epilogue const& e)
{
    return e.end.empty()
               ? activationSource(e.activation) + "TW_INLINE float epilogue(float v, float r) { return activate(" +
                     (e.residual ? "v + r" : "v") + "); }\n"
               : e.end;
}

std::string epilogueConstants(Epilogue const& e, int chunk)
{
    return epilogueFunction(e) + type("Element", e.single ? "float" : "Narrow") + constant("CHUNK", chunk) +
           flag("BIAS", e.bias) + flag("RESIDUAL", e.residual) + flag("ALIGNED", e.aligned);
}

std::string rowsSource(bool single)
{
    return include(single ? "kernels/cuda/common/epilogue_rows_f32.cuh" : "kernels/cuda/common/epilogue_rows_f16.cuh");
}

std::string columnsSource(bool single)
{
    return include(single ? "kernels/cuda/common/epilogue_columns_f32.cuh"
                          : "kernels/cuda/common/epilogue_columns_f16.cuh");
}

int chunkOf(int columns)
{
    return columns % 64 == 0 ? 64 : columns % 32 == 0 ? 32 : columns % 16 == 0 ? 16 : 8;
}

} // namespace tw::cuda
