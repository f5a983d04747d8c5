// SPDX-License-Identifier: Apache-2.0
#define TW_ISA baseline
#define TW_BYTES 16
#include "ops/select/vectors.h"
