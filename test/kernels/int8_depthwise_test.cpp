// SPDX-License-Identifier: Apache-2.0
// The emitted kernel of depthwise convolutions of i8, by every way of multiplying that this CPU has, with random windows,
// strides, borders, types and ends, against plain loops, bit for bit.
#include "kernels/cpu/jit/int8_depthwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/types.h"
#include "ways.h"

namespace {

using namespace tw::kernels::jit;

constexpr int kLine = 64;

template <class T>
T* aligned(std::vector<T>& v, size_t count)
{
    v.assign(count + kLine, T());
    auto const at = reinterpret_cast<uintptr_t>(v.data());
    return v.data() + (kLine - at % kLine) % kLine / sizeof(T);
}

void runTrial(Way const& way, std::mt19937& rng)
{
    auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
    auto byte = [&] { return int8_t(pick(0, 9) == 0 ? -128 : pick(-128, 127)); };
    Int8DepthwiseSpec s;
    s.lanes = pick(0, 1) ? 32 : int8DepthwiseLanes(way.isa);
    s.channels = pick(1, s.lanes);
    s.rows = pick(1, 7);
    s.taps = pick(1, 7);
    s.stride = pick(1, 3);
    s.dilation = pick(1, 2);
    s.before = pick(0, 3);
    s.inWidth = pick(1, 40);
    s.outWidth = (s.inWidth + s.before + pick(0, 3) - 1 - s.dilation * (s.taps - 1)) / s.stride + 1;
    if (s.outWidth < 1)
        return;
    s.prefetch = pick(0, 1);
    IntegerEnd& e = s.end;
    e.bias = pick(0, 1);
    constexpr tw::DataType kTypes[] = {tw::DataType::kFloat, tw::DataType::kHalf, tw::DataType::kInt8};
    e.store = kTypes[pick(0, 2)];
    if (pick(0, 1))
        e.residual = tw::DataType::kInt8;
    Activation const kinds[] = {
        {ActivationKind::kRelu, 0, 0}, {ActivationKind::kClip, -20, 70.5F}, {ActivationKind::kLeakyRelu, 0.25F, 0}};
    if (pick(0, 1))
        e.activation = kinds[pick(0, 2)];
    e.outputScale = pick(0, 1);
    float const size = pick(0, 2) ? 40 / 5461.F / std::sqrt(float(s.rows * s.taps)) : 1e6F; // the last: beyond 2^31
    e.bounded = size < 1 && pick(0, 1);
    s.xPixelBytes = s.residualPixelBytes = kLine * pick(1, 2);
    s.yPixelBytes = kLine * int(tw::sizeOf(e.store)) * pick(1, 2);

    std::vector<int8_t> xs, rs, ws(size_t(s.lanes * s.rows * s.taps));
    std::vector<char> ys;
    int8_t* const x = aligned(xs, size_t(s.rows * s.inWidth * s.xPixelBytes));
    int8_t* const r = aligned(rs, size_t(s.outWidth * s.residualPixelBytes));
    char* const y = aligned(ys, size_t(s.outWidth * s.yPixelBytes));
    for (auto* list : {&xs, &rs, &ws})
        std::generate(list->begin(), list->end(), byte);
    for (int8_t& e : xs)
        e = way.factors == Factors::kBytePairs ? int8_t(e & 127) : e;
    for (int8_t& e : ws)
        e = way.factors == Factors::kByteSigns ? std::max<int8_t>(e, -127) : e;
    std::fill(ys.begin(), ys.end(), char(0x5a));
    std::vector<char> packed;
    char* const w = aligned(packed, size_t(int8DepthwiseWeightBytes(s.lanes, way.factors, s.rows, s.taps)));
    std::vector<int32_t> start(size_t(s.lanes), 0);
    std::vector<float> scale(size_t(s.lanes)), bias(scale), scaleIn(scale), biasIn(scale);
    for (int c = 0; c < s.lanes; ++c) {
        scale[size_t(c)] = size * float(pick(5, 15)) / 10;
        bias[size_t(c)] = float(pick(-200, 200)) / 8;
        if (c < s.channels)
            int8DepthwisePack(s.lanes, way.factors, s.rows, s.taps, c, ws.data() + c * s.rows * s.taps, w,
                              start.data());
    }
    for (int i = 0, width = s.lanes / 4; i < s.lanes; ++i) {
        scaleIn[size_t(i)] = scale[size_t(int8DepthwiseChannel(i / width, i % width))];
        biasIn[size_t(i)] = bias[size_t(int8DepthwiseChannel(i / width, i % width))];
    }
    std::vector<void const*> rows;
    for (int i = 0; i < s.rows; ++i)
        rows.push_back(x + i * s.inWidth * s.xPixelBytes);
    auto const kernel = Int8DepthwiseKernel::emit(way.isa, way.factors, s);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    Int8DepthwiseArgs a;
    a.x = rows.data();
    a.w = w;
    a.start = start.data();
    a.scale = scaleIn.data();
    a.bias = biasIn.data();
    a.y = y;
    a.residual = r;
    a.numbers.residualScale = 0.375F;
    a.numbers.outputScale = 1.5F;
    a.next = rows.back();
    (*kernel)(a);

    for (int64_t o = 0; o < s.outWidth; ++o)
        for (int c = 0; c < s.channels; ++c) {
            int32_t sum = 0;
            for (int i = 0; i < s.rows; ++i)
                for (int tap = 0; tap < s.taps; ++tap) {
                    int64_t const column = o * s.stride - s.before + tap * s.dilation;
                    if (column >= 0 && column < s.inWidth)
                        sum += int32_t(x[(i * s.inWidth + column) * s.xPixelBytes + c]) *
                               ws[size_t((c * s.rows + i) * s.taps + tap)];
                }
            float t = float(sum) * scale[size_t(c)];
            if (e.bias)
                t = t + bias[size_t(c)];
            if (e.residual) {
                float const add = float(r[o * s.residualPixelBytes + c]) * a.numbers.residualScale;
                t = t + add;
            }
            if (e.activation && e.activation->kind == ActivationKind::kRelu)
                t = std::max(t, 0.F);
            else if (e.activation && e.activation->kind == ActivationKind::kClip)
                t = std::max(std::min(t, e.activation->beta), e.activation->alpha);
            else if (e.activation)
                t = t >= 0 ? t : e.activation->alpha * t;
            if (e.outputScale)
                t = t * a.numbers.outputScale;
            char const* const at = y + o * s.yPixelBytes + c * int(tw::sizeOf(e.store));
            std::string const where = "output " + std::to_string(o) + ", channel " + std::to_string(c);
            if (e.store == tw::DataType::kInt8) {
                ASSERT_EQ(int(int8_t(*at)), int(std::clamp(std::nearbyint(t), -128.F, 127.F))) << where;
            } else if (e.store == tw::DataType::kFloat) {
                float got = 0;
                std::memcpy(&got, at, sizeof(got));
                ASSERT_EQ(got, t) << where;
            } else {
                uint16_t got = 0;
                std::memcpy(&got, at, sizeof(got));
                ASSERT_EQ(got, tw::floatToHalf(t)) << where;
            }
        }
    int64_t const written =
        e.store == tw::DataType::kInt8 ? s.lanes : (s.channels + 3) / 4 * 4 * int(tw::sizeOf(e.store));
    for (int64_t o = 0; o < s.outWidth; ++o)
        for (int64_t i = written; i < s.yPixelBytes; ++i)
            ASSERT_EQ(y[o * s.yPixelBytes + i], 0x5a) << "behind the channels of output " << o;
}

} // namespace

TEST(Int8Depthwise, agreesWithPlainLoops)
{
    std::mt19937 rng(20261123);
    for (Way const& way : ways())
        for (int trial = 0; trial < 400; ++trial) {
            SCOPED_TRACE(std::string(isaName(way.isa)) + ", dots " + std::to_string(int(way.factors)) + ", trial " +
                         std::to_string(trial));
            runTrial(way, rng);
            if (testing::Test::HasFatalFailure())
                return;
        }
}

TEST(Int8Depthwise, refusesWhatItCannotEmit)
{
    Int8DepthwiseSpec const fine;
    for (Way const& way : ways()) {
        EXPECT_EQ(int8DepthwiseMisfit(way.isa, fine), nullptr);
        auto refused = [&](auto const& change) {
            Int8DepthwiseSpec s = fine;
            change(s);
            return !Int8DepthwiseKernel::emit(way.isa, way.factors, s).ok();
        };
        EXPECT_TRUE(refused([](auto& s) { s.rows = 65; }));
        EXPECT_TRUE(refused([](auto& s) { s.taps = 0; }));
        EXPECT_TRUE(refused([](auto& s) { s.lanes = 48; }));
        EXPECT_TRUE(refused([](auto& s) { s.end.residual = tw::DataType::kFloat; }));
        EXPECT_TRUE(refused([](auto& s) { s.outWidth = int64_t(1) << 40; }));
    }
}
