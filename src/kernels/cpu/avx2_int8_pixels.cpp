// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx2
#define TW_FLOATS 8
#include "kernels/cpu/int8_pixels_vectors.h"
