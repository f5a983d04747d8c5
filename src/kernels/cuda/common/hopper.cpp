// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/hopper.h"

#include "kernels/cuda/common/source.h"

namespace tw::cuda {

namespace {

// Of d, n / 2 sums: "%0, %1, ..", and "+f"(d[0]), .. as operands of asm.
struct Sums
{
    int count;
    std::string registers, operands;

    Sums(int n, bool integers) : count(n / 2)
    {
        for (int i = 0; i < count; ++i) {
            registers += fmt::format("{}{}", i ? ", %" : "%", i);
            operands += fmt::format("{}{}{}])", i ? ", " : "", integers ? "\"+r\"(d[" : "\"+f\"(d[", i);
        }
    }
    // The operand i behind them.
    std::string arg(int i) const { return fmt::format("%{}", count + i); }
    // Parameters and the beginning of asm; `keep`: the operand that says whether d is added to.
    std::string begin(bool integers, std::string const& parameters, int keep) const
    {
        return fmt::format("{} (&d)[{}], {}, int keep)\n{{\n    asm volatile(\"{{\\n.reg .pred k;\\nsetp.ne.b32 k, {}, "
                           "0;\\nwgmma.mma_async.",
                           integers ? "(i32" : "(float", count, parameters, arg(keep));
    }
    std::string end(std::string const& inputs) const
    {
        return ";\\n}\"\n        : " + operands + "\n        : " + inputs + ", \"r\"(keep));\n}\n";
    }
};

// `type`: "k8.f32.tf32.tf32"; `behind`: signs of the operands and what follows them.
std::string wgmmaOf(int n, char const* type, std::string const& behind, bool integers = false)
{
    Sums const d(n, integers);
    return fmt::format("TW_INLINE void wgmma{}sync.aligned.m64n{}{} {{{}}}, {}, {}, k{}{}",
                       d.begin(integers, "u64 p, u64 q", 2), n, type, d.registers, d.arg(0), d.arg(1), behind,
                       d.end("\"l\"(p), \"l\"(q)"));
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
    return wgmmaOf(n, "k32.s32.s8.s8", "", true);
}

std::string wgmmaSparseSource(int n, bool integers)
{
    Sums const d(n, integers);
    return fmt::format(
        "template <int SELECTOR>\nTW_INLINE void wgmmaSparse{}sp.sync.aligned.m64n{}{}{}}}, {}, {}, {}, {}, k{}{}",
        d.begin(integers, "u64 p, u64 q, u32 places", 4), n, integers ? "k64.s32.s8.s8 {" : "k32.f32.f16.f16 {",
        d.registers, d.arg(0), d.arg(1), d.arg(2), d.arg(3), integers ? "" : ", 1, 1, 0, 0",
        d.end("\"l\"(p), \"l\"(q), \"r\"(places), \"n\"(SELECTOR)"));
}

std::string wgmmaRegistersSource(int n, bool transposedQ)
{
    Sums const d(n, false);
    return fmt::format(
        "TW_INLINE void wgmmaFrom{}sync.aligned.m64n{}k16.f32.f16.f16 {{{}}}, {{{}, {}, {}, {}}}, {}, k, 1, 1, {}{}",
        d.begin(false, "u32 const (&p)[4], u64 q", 5), n, d.registers, d.arg(0), d.arg(1), d.arg(2), d.arg(3), d.arg(4),
        transposedQ ? "1" : "0", d.end("\"r\"(p[0]), \"r\"(p[1]), \"r\"(p[2]), \"r\"(p[3]), \"l\"(q)"));
}

std::string activationSource(std::string const& expression, char const* name)
{
    return std::string("TW_INLINE float ") + name + "(float v) { return " + (expression.empty() ? "v" : expression) +
           "; }\n";
}

} // namespace tw::cuda
