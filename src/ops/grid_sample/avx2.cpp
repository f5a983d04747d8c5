// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx2
#define TW_BYTES 32
#include "ops/grid_sample/vectors.h"
