// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/epilogue.h"

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/common/source.h"

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

namespace {

// i8 8, f16 16, f32 32.
std::string bitsOf(DataType t)
{
    return std::to_string(sizeOf(t) * 8);
}

} // namespace

std::string IntegerEnd::name() const
{
    std::string const parts = std::string(bias ? "b" : "") + (innerScale ? "i" : "") +
                              (residual ? "r" + bitsOf(residualType) : "") + (outputScale ? "o" : "") +
                              (table ? "t" : "");
    return "y" + bitsOf(store) + (parts.empty() ? "" : "_" + parts);
}

std::string integerEndSource(IntegerEnd const& e)
{
    bool const exact = e.activation != kGeluErfToBytes && e.activation != kGeluTanhToBytes;
    return include("kernels/cuda/common/matrix.cuh") + activationSource(e.activation) +
           type("EndElement", storageOf(e.store)) +
           type("EndResidual", storageOf(e.residual ? e.residualType : DataType::kInt8)) + flag("END_BIAS", e.bias) +
           flag("END_INNER", e.innerScale) + flag("END_RESIDUAL", e.residual) + flag("END_OUTPUT", e.outputScale) +
           flag("END_TABLE", e.table) + flag("END_EXACT", exact) + include("kernels/cuda/common/integer_end.cuh");
}

} // namespace tw::cuda
