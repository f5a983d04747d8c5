// SPDX-License-Identifier: Apache-2.0
#include "api/outputs.h"

#include <algorithm>
#include <iterator>

namespace tw::api {

std::vector<TensorObject*> allOutputs(NetworkObject const& network)
{
    std::vector<TensorObject*> all = network.outputs;
    std::copy_if(network.shapeOutputs.begin(), network.shapeOutputs.end(), std::back_inserter(all),
                 [](TensorObject const* t) { return !t->isOutput; });
    return all;
}

} // namespace tw::api
