// SPDX-License-Identifier: Apache-2.0
// Groups of columns with weights of few bits beside sums in double, by every set of instructions that this CPU can run: those of
// AVX-VNNI in AVX-512's encoding. What the op's cases do not reach: one limb, two and three of the same numbers, their error.
#include "kernels/cpu/jit/nbit_kernel.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/types.h"
#include "device/cpu.h"
#include "kernels/cpu/limbs.h"
#include "ways.h"

namespace tw::kernels::jit {

namespace {

// Those of the kernels of few bits.
std::vector<Way> nbitWays()
{
    std::vector<Way> list = ways();
    std::erase_if(list,
                  [](Way const& w) { return w.factors == Factors::kByteWords || w.factors == Factors::kByteSigns; });
    return list;
}

// The largest error of a group over the largest sum.
double errorOf(Way const& way, NbitForm const& f, int rows, int64_t blocks, unsigned seed)
{
    std::mt19937 random(seed);
    auto const number = [&](double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(random);
    };
    int const columns = f.vectors * vectorWidth(way.isa), middle = 1 << (f.bits - 1), perLane = 32 / f.bits;
    std::vector<std::byte> weights(size_t(blocks * f.columnBytes() * columns)), x(size_t(blocks * f.rowBytes() * rows));
    std::vector<double> wanted(size_t(rows * columns));
    std::vector<float> sums(2 * wanted.size(), NAN);
    auto const split = (way.isa == Isa::kAvx512 ? avx512::kLimbs : avx2::kLimbs).split;
    for (int64_t b = 0; b < blocks; ++b) {
        std::byte *const w = weights.data() + b * f.columnBytes() * columns, *const of =
                                                                                 x.data() + b * f.rowBytes() * rows;
        std::vector<float> numbers(size_t(rows * f.block));
        for (float& v : numbers)
            v = float(number(-3, 3));
        for (int k = 0; f.limbs == 0 && k < f.block; ++k)
            for (int r = 0; r < rows; ++r)
                std::memcpy(of + (k * rows + r) * 4, &numbers[size_t(r * f.block + k)], 4);
        for (int r = 0; f.limbs > 0 && r < rows; ++r) {
            float pair[2];
            split(numbers.data() + r * f.block, f.block, f.limbs, f.zeros == NbitForm::kMiddle ? float(middle) : 1.F,
                  reinterpret_cast<int8_t*>(of + rows * 8 + r * f.limbs * f.block), pair);
            std::memcpy(of + r * 8, pair, sizeof pair);
        }
        for (int j = 0; j < columns; ++j) {
            uint16_t const half = floatToHalf(float(number(0.01, 0.1)));
            float const scale = halfToFloat(half);
            f.halfScales ? std::memcpy(w + 2 * j, &half, 2) : std::memcpy(w + 4 * j, &scale, 4);
            std::byte* const zeroAt = w + f.scaleBytes() * columns;
            double zero = middle;
            if (f.zeros == NbitForm::kBytes) {
                auto const byte = uint8_t(number(0, 2 * middle));
                zeroAt[j] = std::byte(byte);
                zero = byte;
            } else if (f.zeros == NbitForm::kFloats) {
                auto const v = float(number(-2, 2 * middle));
                std::memcpy(zeroAt + 4 * j, &v, 4);
                zero = v;
            }
            auto* const lanes = zeroAt + f.zeroBytes() * columns;
            for (int k = 0; k < f.block; ++k) {
                auto const q = unsigned(number(0, 2 * middle));
                int const step = k / perLane, in = k % perLane; // byte in % 4, from bit bits (in / 4) on
                lanes[(step * columns + j) * 4 + in % 4] |= std::byte(q << (in / 4 * f.bits));
                for (int r = 0; r < rows; ++r)
                    wanted[size_t(r * columns + j)] += scale * (q - zero) * numbers[size_t(r * f.block + k)];
            }
        }
    }
    auto kernel = NbitKernel::emit(way.isa, way.factors, f, rows);
    EXPECT_TRUE(kernel.ok()) << (kernel.ok() ? "" : kernel.error().message);
    if (!kernel.ok())
        return 1;
    // In two pieces, each of two groups that are alike.
    int64_t const first = blocks / 2;
    for (auto const& [from, count] : {std::pair(int64_t(0), first), std::pair(first, blocks - first)}) {
        std::byte const* const piece = weights.data() + from * f.columnBytes() * columns;
        std::vector<std::byte> twice(piece, piece + count * f.columnBytes() * columns);
        twice.insert(twice.end(), piece, piece + count * f.columnBytes() * columns);
        (*kernel)({twice.data(), x.data() + from * f.rowBytes() * rows, sums.data(), count, 2, from});
    }
    double error = 0, largest = 0;
    for (size_t i = 0; i < sums.size(); ++i) {
        double const want = wanted[i % wanted.size()];
        largest = std::max(largest, std::fabs(want));
        error = std::max(error, std::isnan(sums[i]) ? 1e30 : std::fabs(sums[i] - want));
    }
    return error / largest;
}

} // namespace

TEST(NbitKernel, GivesTheSums)
{
    for (Way const& way : nbitWays())
        for (int bits : {2, 4, 8})
            for (int block : {16, 48, 256})
                for (auto zeros : {NbitForm::kMiddle, NbitForm::kBytes, NbitForm::kFloats})
                    for (int form = 0; form < 16; ++form) {
                        NbitForm const f{bits, block, form % 4, form / 4 % 2 == 1, zeros, 1 + form / 8};
                        for (int rows : {1, 7, NbitKernel::mostRows(way.isa, way.factors, f)}) {
                            if (rows > NbitKernel::mostRows(way.isa, way.factors, f))
                                continue;
                            double const error = errorOf(way, f, rows, 5, unsigned(bits + block + form));
                            EXPECT_LT(error, f.limbs == 0   ? 4e-6 // sums of 1,280 floats
                                             : f.limbs == 3 ? 2e-6
                                             : f.limbs == 2 ? 2e-4
                                                            : 0.03)
                                << isaName(way.isa) << ' ' << int(way.factors) << ", " << bits << " bits, block "
                                << block << ", zeros " << int(zeros) << ", form " << form << ", " << rows << " rows";
                        }
                    }
}

TEST(NbitKernel, ThreeLimbsAreAsGoodAsFp32)
{
    for (Way const& way : nbitWays()) {
        NbitForm f;
        double const three = errorOf(way, f, 1, 64, 3);
        f.limbs = 2;
        double const two = errorOf(way, f, 1, 64, 3);
        EXPECT_LT(three, 1e-6);
        EXPECT_GT(two, 4 * three); // the limb that is missing
        f.limbs = 1;
        double const one = errorOf(way, f, 1, 64, 3);
        EXPECT_GT(one, 4 * two);
        EXPECT_LT(one, 0.01);
    }
}

TEST(NbitKernel, RefusesWhatDoesNotFit)
{
    for (Way const& way : nbitWays()) {
        NbitForm f;
        EXPECT_FALSE(NbitKernel::emit(way.isa, way.factors, f, NbitKernel::mostRows(way.isa, way.factors, f) + 1).ok());
        EXPECT_FALSE(NbitKernel::emit(way.isa, way.factors, f, 0).ok());
        f.block = 24;
        EXPECT_FALSE(NbitKernel::emit(way.isa, way.factors, f, 1).ok());
    }
}

} // namespace tw::kernels::jit
