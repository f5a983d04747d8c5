// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <iterator>

#include "kernels/cpu/casts.h"
#include "ops/identity/op.h"
#include "tactic/blocks.h"
#include "tactic/vector_tactic.h"

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

// Elements [begin, end).
void convert(TensorRef const& x, TensorRef const& y, int64_t begin, int64_t end)
{
    bool const whole = !isFloating(x.type) && !isFloating(y.type); // i32 and b among themselves
    float floats[kBlock];
    int32_t ints[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
        int64_t const n = std::min(kBlock, end - at);
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
}

Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    bool const copies = x.type == y.type && x.type != DataType::kBool;
    int64_t const size = sizeOf(x.type);
    if (y.count() == 0 || (copies && x.data == y.data))
        return {};
    inPieces(*args.workers, y.count(), x.sizeBytes() + y.sizeBytes(), [&](int64_t begin, int64_t end) {
        if (copies)
            std::memcpy(y.as<char>() + begin * size, x.as<char const>() + begin * size, size_t((end - begin) * size));
        else
            convert(x, y, begin, end);
    });
    return {};
}

constexpr PlainTactic kPlain{"identity_any_plain_cpu", 1, run};

// ---- Conversions from and to f32 in vectors.

// One of the pairs of types; false: there is no kernel for them. x, y: null to ask.
bool castRun(kernels::CastKernels const& k, DataType from, DataType to, void const* x, void* y, int64_t n)
{
    auto with = [&](auto kernel, auto const* in, auto* out) {
        if (x)
            kernel(in, out, n);
        return true;
    };
    auto const* floats = static_cast<float const*>(x);
    auto* results = static_cast<float*>(y);
    if (isFullFloat(from))
        switch (to) {
        case DataType::kInt32:
            return with(k.floatToInt, floats, static_cast<int32_t*>(y));
        case DataType::kHalf:
            return with(k.floatToHalf, floats, static_cast<uint16_t*>(y));
        case DataType::kBf16:
            return with(k.floatToBfloat16, floats, static_cast<uint16_t*>(y));
        case DataType::kBool:
            return with(k.floatToBool, floats, static_cast<uint8_t*>(y));
        default:
            return false;
        }
    if (isFullFloat(to))
        switch (from) {
        case DataType::kInt32:
            return with(k.intToFloat, static_cast<int32_t const*>(x), results);
        case DataType::kHalf:
            return with(k.halfToFloat, static_cast<uint16_t const*>(x), results);
        case DataType::kBf16:
            return with(k.bfloat16ToFloat, static_cast<uint16_t const*>(x), results);
        case DataType::kBool:
            return with(k.boolToFloat, static_cast<uint8_t const*>(x), results);
        default:
            return false;
        }
    return false;
}

Support supportsCast(Problem const& p)
{
    if (!p.target.cpu->f16c)
        return Support::no("needs F16C");
    return castRun(avx2::kCasts, p.inputs[0].type, p.outputs[0].type, nullptr, nullptr, 0)
               ? Support::yes()
               : Support::no("converts between f32 and f16, bf16, i32 or bool only");
}

// Between floating types channels may lie together on both sides: the next node's format is none of a conversion's business.
std::vector<Formats> castFormats(Problem const& p)
{
    std::vector<Formats> all = onlyLinear(p);
    if (isFloating(p.inputs[0].type) && isFloating(p.outputs[0].type))
        std::ranges::move(onlyChannelsLast(p), std::back_inserter(all));
    return all;
}

// Pixel by pixel: what lies behind the channels of one differs between the types.
void castPixels(kernels::CastKernels const& k, TensorRef const& x, TensorRef const& y, Workers& workers)
{
    int64_t const channels = y.dims[std::max(channelAxis(y.format, y.dims.rank), 0)];
    int64_t const from = sizeOf(x.type), to = sizeOf(y.type);
    int64_t const gap = y.stride > 0 ? 0 : y.pixelStride() - channels; // of a larger tensor's part: its neighbour
    inPieces(workers, y.count() / std::max<int64_t>(channels, 1), x.sizeBytes() + y.sizeBytes(),
             [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                     char* const row = y.as<char>() + i * y.pixelStride() * to;
                     castRun(k, x.type, y.type, x.as<char const>() + i * x.pixelStride() * from, row, channels);
                     std::memset(row + channels * to, 0, size_t(gap * to));
                 }
             });
}

template <kernels::CastKernels const& k>
Result<void> runCast(ir::Node const&, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    if (isByPixel(y.format)) {
        castPixels(k, x, y, *args.workers);
        return {};
    }
    int64_t const from = sizeOf(x.type), to = sizeOf(y.type);
    inPieces(*args.workers, y.count(), x.sizeBytes() + y.sizeBytes(), [&](int64_t begin, int64_t end) {
        castRun(k, x.type, y.type, x.as<char const>() + begin * from, y.as<char>() + begin * to, end - begin);
    });
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kAvx512{"identity_any_cast_avx512",
                               2,
                               Isa::kAvx512,
                               runCast<avx512::kCasts>,
                               supportsCast,
                               castFormats,
                               nullptr,
                               std::nullopt};
constexpr VectorTactic kAvx2{
    "identity_any_cast_avx2", 2, Isa::kAvx2, runCast<avx2::kCasts>, supportsCast, castFormats, nullptr, std::nullopt};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::identity
