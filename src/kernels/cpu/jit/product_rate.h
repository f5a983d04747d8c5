// SPDX-License-Identifier: Apache-2.0
// Multiplications and additions in registers, as fast as a core makes them: what its rate is measured with.
#pragma once

#include <cstdint>

#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

class ProductRateKernel
{
public:
    static Result<ProductRateKernel> emit(Isa isa);
    void operator()(int64_t repeats) const { code_.entry<void (*)(int64_t)>()(repeats); }
    // Two for each product of one repeat.
    double operations() const { return operations_; }

private:
    Code code_;
    double operations_ = 0;
};

} // namespace tw::kernels::jit
