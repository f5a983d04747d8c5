// SPDX-License-Identifier: Apache-2.0
#include "cuda/fake_loops.h"
