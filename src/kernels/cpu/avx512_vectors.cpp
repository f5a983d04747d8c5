// SPDX-License-Identifier: Apache-2.0
#define TW_ISA avx512
#define TW_FLOATS 16
#include "kernels/cpu/casts_vectors.h"
#include "kernels/cpu/channels_last_vectors.h"
#include "kernels/cpu/dots_vectors.h"
#include "kernels/cpu/few_filters_vectors.h"
#define TW_DOUBLES 8
#include "kernels/cpu/functions_vectors.h"
#include "kernels/cpu/int8_pixels_vectors.h"
#include "kernels/cpu/limbs_vectors.h"
#include "kernels/cpu/magnitudes_vectors.h"
#include "kernels/cpu/rows_vectors.h"
#include "kernels/cpu/token_weights_vectors.h"
