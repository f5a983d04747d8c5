// SPDX-License-Identifier: Apache-2.0
// The kernels of few_filters.h, for the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include <utility>

#include "kernels/cpu/few_filters.h"
#include "kernels/cpu/float_vectors.h"

namespace tw::TW_ISA {

namespace {

namespace few_filters {

// Of all lanes.
inline float joined(V v)
{
    __m128 parts[TW_FLOATS / 4];
    __builtin_memcpy(parts, &v, sizeof v);
    __m128 all = _mm_add_ps(parts[0], parts[1]);
    if constexpr (TW_FLOATS == 16)
        all = _mm_add_ps(all, _mm_add_ps(parts[2], parts[3]));
    all = _mm_add_ps(all, _mm_movehl_ps(all, all));
    return _mm_cvtss_f32(_mm_add_ss(all, _mm_movehdup_ps(all)));
}

// Filters filters for Outputs outputs, each a sum of its own; indices are constants, so that all sums are registers.
template <int Filters, int... Sum>
[[gnu::always_inline]] inline void run(kernels::FewFiltersTile const& t, std::integer_sequence<int, Sum...>)
{
    constexpr int kOutputs = int(sizeof...(Sum)) / Filters;
    V sums[sizeof...(Sum)] = {};
    for (int64_t row = 0; row < t.rows; ++row)
        for (int64_t tap = 0; tap < t.taps; ++tap) {
            float const* const x = t.x + row * t.rowStep + tap * t.tapStep;
            float const* const w = t.w + row * t.rowWeights + tap * Filters * t.channels;
            for (int64_t c = 0; c < t.channels; c += kFloats) {
                V filters[Filters], pixels[kOutputs];
                auto step = [&]<int I>() {
                    constexpr int kOutput = I / Filters, kFilter = I % Filters;
                    if constexpr (kOutput == 0)
                        filters[kFilter] = load(w + kFilter * t.channels + c);
                    if constexpr (kFilter == 0)
                        pixels[kOutput] = load(x + kOutput * t.pixelStep + c);
                    sums[I] = sumOfProduct(pixels[kOutput], filters[kFilter], sums[I]);
                };
                (step.template operator()<Sum>(), ...);
            }
        }
    ((t.sums[Sum / Filters * kFloats + Sum % Filters] = joined(sums[Sum])), ...);
}

template <int Filters, int Outputs>
void tile(kernels::FewFiltersTile const& t)
{
    run<Filters>(t, std::make_integer_sequence<int, Filters * Outputs>());
}

template <int Filters, int Many, int Some>
constexpr kernels::FewFilters of()
{
    return {{Many, Some, 1}, {tile<Filters, Many>, tile<Filters, Some>, tile<Filters, 1>}};
}

} // namespace few_filters

} // namespace

// As many sums as registers hold beside the filters and a pixel.
#if TW_FLOATS == 16
extern kernels::FewFilters const kFewFilters[kernels::kMostFewFilters] = {
    few_filters::of<1, 16, 4>(), few_filters::of<2, 12, 4>(), few_filters::of<3, 8, 3>(), few_filters::of<4, 6, 2>()};
#else
extern kernels::FewFilters const kFewFilters[kernels::kMostFewFilters] = {
    few_filters::of<1, 8, 4>(), few_filters::of<2, 6, 3>(), few_filters::of<3, 4, 2>(), few_filters::of<4, 2, 2>()};
#endif

} // namespace tw::TW_ISA
