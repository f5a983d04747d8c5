// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx512
#include "ops/rotary/vectors.h"
