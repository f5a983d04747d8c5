// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx2
#include "ops/rotary/vectors.h"
