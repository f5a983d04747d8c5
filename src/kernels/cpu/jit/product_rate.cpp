// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/product_rate.h"

#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

Result<ProductRateKernel> ProductRateKernel::emit(Isa isa)
{
    constexpr int kSums = 12; // that do not wait for each other: 4 or 5 cycles on two ports
    ProductRateKernel kernel;
    kernel.operations_ = 2.0 * kSums * vectorWidth(isa);
    TW_ASSIGN(kernel.code_, jit::emit(isa, [](VectorCode& c) {
                  Xbyak::Label next;
                  c.loadConstant(kSums, 0.5F);
                  c.loadConstant(kSums + 1, 0.25F);
                  for (int i = 0; i < kSums; ++i)
                      c.zero(i);
                  c.L(next); // sums go to 0.5: no number there is too small or too large
                  for (int i = 0; i < kSums; ++i)
                      c.vfmadd213ps(c.vec(i), c.vec(kSums), c.vec(kSums + 1));
                  c.dec(Xbyak::util::rdi);
                  c.jnz(next);
                  c.vzeroupper();
                  c.ret();
              }));
    return kernel;
}

} // namespace tw::kernels::jit
