// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "ops/blocks.h"
#include "ops/identity/op.h"

namespace tw::ops::identity {

namespace {

// Float to integer toward zero, saturated; NaN gives 0. 2^31 is the first float above INT32_MAX.
int32_t toInt32(float v)
{
    if (v >= 2147483648.0f)
        return INT32_MAX;
    if (v < -2147483648.0f)
        return INT32_MIN;
    return v != v ? 0 : int32_t(v);
}
uint8_t toUInt8(float v)
{
    return v >= 255 ? 255 : v > 0 ? uint8_t(v) : 0;
}

Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const count = y.count();
    if (x.type == y.type && x.type != DataType::kBool) {
        if (count > 0 && x.data != y.data)
            std::memcpy(y.data, x.data, size_t(x.sizeBytes()));
        return {};
    }
    bool const whole = !isFloating(x.type) && !isFloating(y.type); // i32 and b among themselves
    float floats[kBlock];
    int32_t ints[kBlock];
    for (int64_t at = 0; at < count; at += kBlock) {
        int64_t const n = std::min(kBlock, count - at);
        if (whole) {
            int32_t const* from = loadInts(x.type, x.data, at, 1, n, ints);
            for (int64_t i = 0; i < n; ++i) {
                if (y.type == DataType::kBool)
                    y.as<uint8_t>()[at + i] = from[i] != 0;
                else
                    y.as<int32_t>()[at + i] = from[i];
            }
            continue;
        }
        float const* from = loadFloats(x.type, x.data, at, 1, n, floats);
        switch (y.type) {
        case DataType::kFloat:
            std::copy(from, from + n, y.as<float>() + at);
            break;
        case DataType::kInt32:
            for (int64_t i = 0; i < n; ++i)
                y.as<int32_t>()[at + i] = toInt32(from[i]);
            break;
        case DataType::kBool:
            for (int64_t i = 0; i < n; ++i)
                y.as<uint8_t>()[at + i] = from[i] != 0;
            break;
        case DataType::kUInt8:
            for (int64_t i = 0; i < n; ++i)
                y.as<uint8_t>()[at + i] = toUInt8(from[i]);
            break;
        default: // i32 beyond 2^24 rounds twice on the way to f16, but is an infinity there in any case
            storeFloats(y.type, y.data, at, n, from);
            break;
        }
    }
    return {};
}

constexpr PlainTactic kPlain{"identity_plain", 1, run};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::identity
