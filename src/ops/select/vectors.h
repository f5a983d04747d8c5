// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels.h, written once with the compiler's vector types. For the files that define TW_ISA (the
// namespace) and TW_BYTES (of a vector).
#include "ops/select/kernels.h"

namespace tw::TW_ISA {

namespace {

using ops::select::Row;

template <class T>
struct SelectVectors
{
    static constexpr int64_t kWidth = TW_BYTES / int64_t(sizeof(T));
    using V [[gnu::vector_size(TW_BYTES)]] = T;
    using Mask [[gnu::vector_size(TW_BYTES)]] = std::make_signed_t<T>;
    using Bytes [[gnu::vector_size(TW_BYTES / sizeof(T))]] = uint8_t;
};

template <class V>
inline V loadSelected(void const* x)
{
    V v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
}

template <class T, bool kBool>
void choose(Row const& row)
{
    using O = SelectVectors<T>;
    using V = typename O::V;
    Row r = row;
    if (r.cIsOne && *r.c)
        r.b = r.a, r.bIsOne = r.aIsOne;
    auto const *a = static_cast<T const*>(r.a), *b = static_cast<T const*>(r.b);
    auto* y = static_cast<T*>(r.y);
    V const aOne = V{} + *a, bOne = V{} + *b;
    auto vector = [&](int64_t i, typename O::Mask chosen) {
        V const bv = r.bIsOne ? bOne : loadSelected<V>(b + i);
        V v = r.cIsOne ? bv : chosen ? (r.aIsOne ? aOne : loadSelected<V>(a + i)) : bv;
        if constexpr (kBool)
            v = V(v != 0) & T(1);
        __builtin_memcpy(y + i, &v, sizeof v);
    };
    auto all = [&](auto const& chosenAt) { // the last vector may overlap the one before it
        for (int64_t i = 0; i < r.n; i += O::kWidth) {
            int64_t const at = i + O::kWidth <= r.n ? i : r.n - O::kWidth;
            vector(at, chosenAt(at));
        }
    };
    if (r.n < O::kWidth)
        for (int64_t i = 0; i < r.n; ++i) {
            T const v = !r.cIsOne && r.c[i] ? a[r.aIsOne ? 0 : i] : b[r.bIsOne ? 0 : i];
            y[i] = kBool ? T(v != 0) : v;
        }
    else if (r.cIsOne)
        all([](int64_t) { return typename O::Mask{}; });
    else
        all([&](int64_t i) {
            return __builtin_convertvector(loadSelected<typename O::Bytes>(r.c + i) != 0, typename O::Mask);
        });
}

} // namespace

ops::select::Kernels const kSelect = {choose<uint32_t, false>, choose<uint16_t, false>, choose<uint8_t, false>,
                                      choose<uint8_t, true>};

} // namespace tw::TW_ISA
