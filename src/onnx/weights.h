// SPDX-License-Identifier: Apache-2.0
// TensorProto -> Constant: inline, typed and external data; types that 8.5 does not have are converted with one warning
// each.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "onnx/importer.h"

namespace tw_onnx {
class TensorProto;
} // namespace tw_onnx

namespace tw::onnx {

class WeightReader
{
public:
    using Warn = std::function<void(std::string const&)>;
    WeightReader(Memory& memory, Warn warn) : memory_(memory), warn_(std::move(warn)) {}
    void setModelPath(std::string const& path) { modelPath_ = path; }

    // Throws ImportError. Data that needs no conversion stays where it is: in `tensor`, which must outlive the result.
    Constant read(tw_onnx::TensorProto const& tensor, std::string const& what);
    // Integers of up to 8 bits that the API has no type for stay as they are at first: Constant::later.
    Constant readLater(tw_onnx::TensorProto const& tensor, std::string const& what);

private:
    Constant described(tw_onnx::TensorProto const& tensor, std::string const& what, std::string_view& bytes);
    Constant withValues(Constant c, tw_onnx::TensorProto const& tensor, std::string const& what,
                        std::string_view bytes);
    std::string_view bytesOf(tw_onnx::TensorProto const& tensor, std::string const& what);
    std::string_view readExternal(tw_onnx::TensorProto const& tensor, std::string const& what);
    // The bytes of a file, which are read when somebody looks at them. They stay for the life of the parser.
    std::string_view mapped(std::string const& path, std::string const& what);

    Memory& memory_;
    Warn warn_;
    std::string modelPath_;
    std::map<std::string, std::string_view> files_; // by their real paths
    bool warnedInt64_ = false, warnedClamp_ = false, warnedDouble_ = false, warnedUint8_ = false, warnedSmall_ = false,
         warnedUnsigned_ = false;
};

// False for types that tensors of the network cannot have. INT64 -> kINT32, DOUBLE -> kFLOAT.
bool dataTypeOf(int onnxType, DataType& type);
Integers integersOf(int onnxType);
std::string onnxTypeName(int onnxType);
// The type of ours that an attribute asks for by TensorProto's number of a floating one; `absent` for 0. None for other numbers.
std::optional<DataType> floatingType(int64_t onnxType, DataType absent);

} // namespace tw::onnx
