// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/hopper.h"

#include "kernels/cuda/common/source.h"

namespace tw::cuda {

char const* const kRelu = "maximumOf(v, 0.0f)";
char const* const kGeluErf = "geluErfOf(v)";
char const* const kGeluTanh = "geluTanhOf(v)";
char const* const kGeluErfToBytes = "geluErfByExponent(v)";
char const* const kGeluTanhToBytes = "geluTanhByExponent(v)";
char const* const kSwish = "v * sigmoidOf(v)";

namespace {

// `type`: "k8.f32.tf32.tf32"; `behind`: signs of the operands and what follows them; `sum`, `constraint`: of a sum.
std::string wgmmaOf(int n, char const* type, std::string const& behind, char const* sum = "float",
                    char const* constraint = "f")
{
    int const count = n / 2;
    std::string registers, operands;
    for (int i = 0; i < count; ++i) {
        registers += (i ? ", %" : "%") + std::to_string(i);
        operands += std::string(i ? ", \"+" : "\"+") + constraint + "\"(d[" + std::to_string(i) + "])";
    }
    auto arg = [&](int i) { return "%" + std::to_string(count + i); };
    return std::string("TW_INLINE void wgmma(") + sum + " (&d)[" + std::to_string(count) +
           "], u64 p, u64 q, int keep)\n{\n" + "    asm volatile(\"{\\n.reg .pred k;\\nsetp.ne.b32 k, " + arg(2) +
           ", 0;\\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + type + " {" + registers + "}, " + arg(0) +
           ", " + arg(1) + ", k" + behind + ";\\n}\"\n        : " + operands +
           "\n        : \"l\"(p), \"l\"(q), \"r\"(keep));\n}\n";
}

} // namespace

std::string wgmmaSource(int n, bool transposedP, bool transposedQ)
{
    return wgmmaOf(n, "k16.f32.\" TW_NARROW_PTX \".\" TW_NARROW_PTX \"",
                   std::string(", 1, 1") + (transposedP ? ", 1" : ", 0") + (transposedQ ? ", 1" : ", 0"));
}

std::string wgmmaTf32Source(int n)
{
    return wgmmaOf(n, "k8.f32.tf32.tf32", ", 1, 1");
}

std::string wgmmaIntegersSource(int n)
{
    return wgmmaOf(n, "k32.s32.s8.s8", "", "i32", "r");
}

std::string wgmmaSparseSource(int n, bool integers)
{
    int const count = n / 2;
    std::string registers, operands;
    for (int i = 0; i < count; ++i) {
        registers += (i ? ", %" : "%") + std::to_string(i);
        operands += std::string(i ? ", " : "") + (integers ? "\"+r\"(d[" : "\"+f\"(d[") + std::to_string(i) + "])";
    }
    auto arg = [&](int i) { return "%" + std::to_string(count + i); };
    return std::string("template <int SELECTOR>\nTW_INLINE void wgmmaSparse(") + (integers ? "i32" : "float") +
           " (&d)[" + std::to_string(count) + "], u64 p, u64 q, u32 places, int keep)\n{\n" +
           "    asm volatile(\"{\\n.reg .pred k;\\nsetp.ne.b32 k, " + arg(4) +
           ", 0;\\nwgmma.mma_async.sp.sync.aligned.m64n" + std::to_string(n) +
           (integers ? "k64.s32.s8.s8 {" : "k32.f32.f16.f16 {") + registers + "}, " + arg(0) + ", " + arg(1) + ", " +
           arg(2) + ", " + arg(3) + ", k" + (integers ? "" : ", 1, 1, 0, 0") + ";\\n}\"\n        : " + operands +
           "\n        : \"l\"(p), \"l\"(q), \"r\"(places), \"n\"(SELECTOR), "
           "\"r\"(keep));\n}\n";
}

std::string wgmmaRegistersSource(int n, bool transposedQ)
{
    int const count = n / 2;
    std::string registers, operands;
    for (int i = 0; i < count; ++i) {
        registers += (i ? ", %" : "%") + std::to_string(i);
        operands += (i ? ", \"+f\"(d[" : "\"+f\"(d[") + std::to_string(i) + "])";
    }
    auto arg = [&](int i) { return "%" + std::to_string(count + i); };
    return "TW_INLINE void wgmmaFrom(float (&d)[" + std::to_string(count) +
           "], u32 const (&p)[4], u64 q, int keep)\n{\n" + "    asm volatile(\"{\\n.reg .pred k;\\nsetp.ne.b32 k, " +
           arg(5) + ", 0;\\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k16.f32.f16.f16 {" + registers +
           "}, {" + arg(0) + ", " + arg(1) + ", " + arg(2) + ", " + arg(3) + "}, " + arg(4) + ", k, 1, 1, " +
           (transposedQ ? "1" : "0") + ";\\n}\"\n        : " + operands +
           "\n        : \"r\"(p[0]), \"r\"(p[1]), \"r\"(p[2]), \"r\"(p[3]), \"l\"(q), \"r\"(keep));\n}\n";
}

std::string activationSource(std::string const& expression, char const* name)
{
    return std::string("TW_INLINE float ") + name + "(float v) { return " + (expression.empty() ? "v" : expression) +
           "; }\n";
}

} // namespace tw::cuda
