// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx512
#define TW_FLOATS 16
#include "kernels/cpu/int8_pixels_vectors.h"
