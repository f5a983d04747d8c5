// SPDX-License-Identifier: Apache-2.0
// What the user permits a build to do with numbers. Each is asked where something would make use of it; nothing else says so.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/types.h"

namespace tw {

enum class Permission : int
{
    kHalf,        // FP16 tensors: BuilderFlag::kFP16. A CPU computes in FP32 all the same
    kInt8,        // INT8 tensors: BuilderFlag::kINT8
    kTf32,        // factors of FP32 products with 10 bits of mantissa, on a GPU: BuilderFlag::kTF32
    kBf16Factors, // with 7 bits, on a CPU: TENSORWRIGHT_CPU_BF16
    kHalfWeights, // weights of FP32 products in FP16, on a CPU: BuilderFlag::kFP16; never of layers that ask for FP32
    kSparse,      // products with weights that follow 2:4: BuilderFlag::kSPARSE_WEIGHTS
    kBf16Tensors, // BF16 tensors: TENSORWRIGHT_BF16_TENSORS
    kWinograd,    // sums of transformed elements, unless TENSORWRIGHT_WINOGRAD=0
};

class Permissions
{
public:
    constexpr Permissions(std::initializer_list<Permission> list = {})
    {
        for (Permission p : list)
            set(p);
    }
    constexpr bool has(Permission p) const { return (bits_ & bitOf(p)) != 0; }
    constexpr bool hasAll(Permissions const& others) const { return (others.bits_ & ~bits_) == 0; }
    constexpr void set(Permission p, bool permitted = true)
    {
        bits_ = permitted ? bits_ | bitOf(p) : bits_ & ~bitOf(p);
    }
    constexpr void give(Permissions const& others) { bits_ |= others.bits_; }
    constexpr void take(Permissions const& others) { bits_ &= ~others.bits_; }
    constexpr uint32_t bits() const { return bits_; } // for keys

private:
    static constexpr uint32_t bitOf(Permission p) { return 1u << int(p); }
    uint32_t bits_ = 0;
};

// What tensors of a type need.
constexpr Permissions needsOf(DataType t)
{
    Permissions p;
    p.set(Permission::kHalf, t == DataType::kHalf);
    p.set(Permission::kBf16Tensors, t == DataType::kBf16);
    p.set(Permission::kInt8, isQuantized(t));
    return p;
}

} // namespace tw
