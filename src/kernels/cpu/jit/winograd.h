// SPDX-License-Identifier: Apache-2.0
// The transforms of Winograd's convolution F(m x m, 3x3), m = 2 or 4, on tiles of side t = m + 2:
//   Y = At [ (G g Gt) . (Bt d B) ] A        d: a tile of x, [t, t]; g: one filter, [3, 3]; Y: [m, m]
// where the product in the middle becomes t^2 matrix products over the channels. Channels-last tensors; one vector of
// channels at a time, so that every lane computes a tile of its own.
//
// Interpolation points: m = 2: 0, 1, -1, infinity. m = 4: 0, 11/16, -11/16, 11/8, -11/8, infinity: all entries of
// B and G are exact (the scales that belong to G are in A), and the largest error over random data is a fifth of that
// with 0, 1, -1, 2, -2.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/sum_end.h"

namespace tw::kernels::jit {

constexpr int winogradSide(int m)
{
    return m + 2;
}

// d -> Bt d B, for one tile and `vectors` vectors of channels.
struct WinogradInputSpec
{
    int m = 4;
    bool table = false;        // pixels come by address, so that those outside the image can point to zeros
    int32_t pixelBytes = 0;    // from pixel to pixel of x (not with a table)
    int32_t positionBytes = 0; // of V, from one of the t^2 positions to the next
};
struct WinogradInputArgs
{
    float const* x = nullptr;             // top left pixel of the tile
    int64_t rowBytes = 0;                 // from row to row of x
    float const* const* pixels = nullptr; // [t * t], with a table
    int64_t offsetBytes = 0;              // added to the addresses of all pixels
    float* v = nullptr;
    int64_t vectors = 0;
};

// g -> G g Gt, for `vectors` vectors of filters and args.channels channels:
//   w [channels][3][3][vectors * width] -> u [t * t] [channels][vectors * width], positionBytes apart.
struct WinogradFilterSpec
{
    int m = 4;
    int vectors = 1;
    int32_t positionBytes = 0;
};
struct WinogradFilterArgs
{
    float const* w = nullptr;
    float* u = nullptr;
    int64_t channels = 0;
};

// M -> At M A + bias + residual, activation, for the first rows x columns pixels of one tile.
struct WinogradOutputSpec : SumEnd // without steps
{
    int m = 4;
    int rows = 4, columns = 4; // 1 .. m
    int32_t positionBytes = 0; // of M
    int32_t pixelBytes = 0;    // of y
    int32_t residualPixelBytes = 0;
    bool bias = false, residual = false;
};
struct WinogradOutputArgs
{
    float const* m = nullptr;
    float* y = nullptr; // top left pixel of the tile
    int64_t rowBytes = 0;
    float const* bias = nullptr;
    float const* residual = nullptr; // top left pixel
    int64_t residualRowBytes = 0;
    int64_t vectors = 0;
};

template <class Spec, class Args>
struct WinogradTransform : Emitted<Args>
{
    static Result<WinogradTransform> emit(Isa isa, Spec const& spec);
};
using WinogradInput = WinogradTransform<WinogradInputSpec, WinogradInputArgs>;
using WinogradFilter = WinogradTransform<WinogradFilterSpec, WinogradFilterArgs>;
using WinogradOutput = WinogradTransform<WinogradOutputSpec, WinogradOutputArgs>;

} // namespace tw::kernels::jit
