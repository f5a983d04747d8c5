// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/cuda_arithmetic.h"

#include "kernels/cuda/common/prelude.h"

namespace tw::ops::reduce {

char const* const kCudaArithmetic = R"(
TW_INLINE float maximumOf(float a, float b) { float y; asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
TW_INLINE float minimumOf(float a, float b) { float y; asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
)";

CudaArithmetic cudaArithmetic(Kind kind, DataType type)
{
    bool const isInt32 = type == DataType::kInt32;
    auto real = [](char const* identity, char const* join, char const* result) {
        return CudaArithmetic{"float", "float", "float", identity, join, result};
    };
    auto whole = [](char const* identity, char const* join, char const* result, char const* compute = "int") {
        return CudaArithmetic{"i64", "int", compute, identity, join, result};
    };
    if (isFloating(type))
        switch (kind) {
        case Kind::kSum:
            return real("0", "a + b", "v");
        case Kind::kProd:
            return real("1", "a * b", "v");
        case Kind::kMax: // NaN wins
            return real("-__int_as_float(0x7f800000)", "maximumOf(a, b)", "v");
        case Kind::kMin:
            return real("__int_as_float(0x7f800000)", "minimumOf(a, b)", "v");
        case Kind::kAvg:
            return real("0", "a + b", "v / count");
        }
    switch (kind) {
    case Kind::kSum:
        return whole("0", "a + b", isInt32 ? "int(v)" : "int(max(-128ll, min(127ll, v)))");
    case Kind::kProd: // i32 wraps; i8 saturates: from 128 on it leaves the range for good, unless a 0 follows
        return isInt32 ? whole("1", "i64(i32(u32(u64(a) * u64(b))))", "int(v)")
                       : whole("1", "max(-1000ll, min(1000ll, a * b))", "int(max(-128ll, min(127ll, v)))");
    case Kind::kMax:
        return whole(isInt32 ? "-2147483648ll" : "-128", "max(a, b)", "int(v)");
    case Kind::kMin:
        return whole(isInt32 ? "2147483647ll" : "127", "min(a, b)", "int(v)");
    case Kind::kAvg:
        return isInt32 ? whole("0", "a + b", "count == 0 ? 0 : int(v / count)")
                       : whole("0", "a + b", "count == 0 ? -128.0 : rint(double(v) / double(count))", "double");
    }
    return {};
}

std::string withArithmetic(char const* text, CudaArithmetic const& f, DataType type)
{
    return cuda::expand(text, {{"accumulator", f.accumulator},
                               {"join", f.join},
                               {"identity", f.identity},
                               {"result", f.result},
                               {"compute", f.compute},
                               {"number", f.number},
                               {"x", cuda::storageOf(type)}});
}

} // namespace tw::ops::reduce
