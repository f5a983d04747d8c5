// SPDX-License-Identifier: Apache-2.0
// Tables of bytes against plain loops, at every length that ends inside a vector, in and out of place.
#include "kernels/cpu/jit/byte_table.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "device/cpu.h"
#include "ways.h"

namespace tw::kernels::jit {

namespace {

TEST(ByteTable, AgreesWithPlainLoops)
{
    std::mt19937 rng(7);
    for (Isa isa : isas()) {
        if (isa == Isa::kAvx512 && !device::probeCpu().avx512vbmi)
            continue;
        auto const kernel = ByteTableKernel::emit(isa);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        for (int n = 0; n <= 300; ++n) {
            std::vector<int8_t> table(256), x(size_t(n) + 1), want(size_t(n) + 1), y(size_t(n) + 1, 77);
            for (auto* list : {&table, &x})
                std::generate(list->begin(), list->end(), [&] { return int8_t(rng()); });
            for (int i = 0; i < n; ++i)
                want[size_t(i)] = table[uint8_t(x[size_t(i)])];
            want.back() = 77;
            (*kernel)(table.data(), x.data(), y.data(), n);
            ASSERT_EQ(y, want) << isaName(isa) << ", " << n << " bytes";
            x.back() = 77;
            (*kernel)(table.data(), x.data(), x.data(), n);
            ASSERT_EQ(x, want) << isaName(isa) << ", " << n << " bytes in place";
        }
    }
}

} // namespace

} // namespace tw::kernels::jit
