// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx2
#define TW_DOUBLES 4
#include "kernels/cpu/functions_vectors.h"
