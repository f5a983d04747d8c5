// SPDX-License-Identifier: Apache-2.0
// What the inspector says of products of matrices. A fully connected layer is the convolution whose window is its whole
// input, as in 8.5.
#pragma once

#include "families/elementwise/epilogue.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void addProduct(LayerFacts& facts, matrix_multiply::Attrs const& a);
void addFullyConnected(LayerFacts& facts, Epilogue const& epilogue);

} // namespace tw::ops
