// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx512
#define TW_DOUBLES 8
#include "kernels/cpu/functions_vectors.h"
