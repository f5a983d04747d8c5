// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx512
#define TW_BYTES 64
#include "ops/grid_sample/vectors.h"
