// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx2
#define TW_FLOATS 8
#include "ops/attention/few_rows_vectors.h"
