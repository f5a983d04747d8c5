// SPDX-License-Identifier: Apache-2.0
// How fast so many threads read memory: the rate that kernels of one row are held against.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/workers.h"
#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/vector_code.h"

namespace tw::bench {

// Sums of everything in four registers.
class ReadLoop
{
public:
    explicit ReadLoop(kernels::jit::Isa isa) : step_(4 * kernels::jit::vectorWidth(isa))
    {
        auto made = kernels::jit::emit(isa, [](kernels::jit::VectorCode& c) {
            Xbyak::Label again;
            for (int v = 0; v < 4; ++v)
                c.zero(v);
            c.align(32);
            c.L(again);
            for (int v = 0; v < 4; ++v)
                c.vaddps(c.vec(v), c.vec(v), c.ptr[c.rdi + v * c.vectorBytes()]);
            c.add(c.rdi, 4 * c.vectorBytes());
            c.dec(c.rsi);
            c.jnz(again, c.T_NEAR);
            c.vzeroupper();
            c.ret();
        });
        if (!made.ok())
            std::abort();
        code_ = std::move(*made);
    }
    void read(float const* from, int64_t count, Workers& workers) const
    {
        inParts(count, workers, [&](int64_t begin, int64_t n) {
            code_.entry<void (*)(float const*, int64_t)>()(from + begin, n / step_);
        });
    }
    // Calls f(begin, n) for a part for each worker, whole steps of the loop.
    template <class F>
    void inParts(int64_t count, Workers& workers, F const& f) const
    {
        int64_t const parts = workers.count(), steps = count / step_;
        workers.run(parts, [&](int64_t p, int) {
            int64_t const begin = steps * p / parts, end = steps * (p + 1) / parts;
            if (end > begin)
                f(begin * step_, (end - begin) * step_);
        });
    }

private:
    kernels::jit::Code code_;
    int64_t step_;
};

} // namespace tw::bench
