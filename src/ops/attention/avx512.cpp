// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx512
#define TW_FLOATS 16
#include "ops/attention/few_rows_vectors.h"
