// SPDX-License-Identifier: Apache-2.0
// The operations of UFF files. Each function adds the layers of one node.
#pragma once

#include <string>

#include "NvInfer.h"

namespace tw::uff {

class Model;
class UffNode;

using Operation = void (*)(UffNode& n);

// By the name in a file; a name that begins with an underscore is a plugin's. Null: there is none.
Operation findOperation(std::string const& name, Model const& model);

// windows.cpp
void importConv(UffNode& n);
void importConvTranspose(UffNode& n);
void importPool(UffNode& n);
void importFullyConnected(UffNode& n);

// arithmetic.cpp
void importBinary(UffNode& n);
void importUnary(UffNode& n);
void importActivation(UffNode& n);
void importLeakyRelu(UffNode& n);
void importSoftmax(UffNode& n);
void importBatchnorm(UffNode& n);
void importLrn(UffNode& n);
void importReduce(UffNode& n);
void importArgMax(UffNode& n);
void importArgMin(UffNode& n);

// shapes.cpp
void importIdentity(UffNode& n);
void importReshape(UffNode& n);
void importFlatten(UffNode& n);
void importTranspose(UffNode& n);
void importSqueeze(UffNode& n);
void importExpandDims(UffNode& n);
void importShape(UffNode& n);

// joining.cpp
void importConcat(UffNode& n);
void importStack(UffNode& n);
void importStridedSlice(UffNode& n);
void importPad(UffNode& n);
void importGather(UffNode& n);

// operations.cpp
void importInput(UffNode& n);

// plugin.cpp
nvinfer1::IPluginCreator* findCreator(std::string const& operation, std::string const& pluginNamespace);
void importPlugin(UffNode& n);

} // namespace tw::uff
