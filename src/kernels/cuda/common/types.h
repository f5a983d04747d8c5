// SPDX-License-Identifier: Apache-2.0
// Numbers by width, as host and kernels call them in the structs that they share.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstdint>
#endif

namespace tw::cuda {

#ifdef __CUDACC_RTC__ // NVRTC includes nothing
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using i8 = signed char;
using i32 = int;
using i64 = long long;
#else
using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i32 = int32_t;
using i64 = int64_t;
#endif
using f32 = float;
struct f16
{
    u16 bits;
};

} // namespace tw::cuda
