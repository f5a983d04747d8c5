// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/prelude.h"

#include <cstring>

#include "base/check.h"
#include "kernels/cuda/common/params.h"
#include "kernels/cuda/common/source.h"

namespace tw::cuda {

Div divBy(int64_t d)
{
    TW_CHECK(d >= 0);
    Div v;
    v.d = d > 0 ? uint64_t(d) : 1;
    if (v.d < (uint64_t(1) << 31)) {
        while ((uint64_t(1) << v.s) < v.d)
            ++v.s;
        v.m = uint32_t(((uint64_t(1) << 32) * ((uint64_t(1) << v.s) - v.d)) / v.d + 1);
    }
    return v;
}

std::string prelude(bool wide)
{
    return flag("kWideIndices", wide) + include("kernels/cuda/common/prelude.cuh");
}

char const* storageOf(DataType t)
{
    return t == DataType::kBool ? "b8" : nameOf(t);
}

char const* computeOf(DataType t)
{
    return isFloating(t) ? "float" : t == DataType::kInt8 ? "double" : "int";
}

char const* unitOf(int64_t sizeBytes)
{
    switch (sizeBytes) {
    case 2:
        return "unit2";
    case 4:
        return "unit4";
    case 8:
        return "unit8";
    case 16:
        return "unit16";
    default:
        return "unit1";
    }
}

std::string literal(float v)
{
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof(bits));
    return fmt::format("__uint_as_float({}u)", bits);
}

std::string literal(double v)
{
    int64_t bits;
    std::memcpy(&bits, &v, sizeof(bits));
    return fmt::format("__longlong_as_double((long long){}ull)", uint64_t(bits));
}

std::string expand(std::string text, std::initializer_list<Substitution> list)
{
    for (Substitution const& s : list) {
        std::string const name = std::string("$") + s.name + "$";
        for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + s.value.size()))
            text.replace(at, name.size(), s.value);
    }
    return text;
}

} // namespace tw::cuda
