// SPDX-License-Identifier: Apache-2.0
// TensorProto -> Constant: inline, typed and external data; types that 8.5 does not have are converted with one warning
// each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "onnx/importer.h"

namespace tw_onnx {
class TensorProto;
} // namespace tw_onnx

namespace tw::onnx {

// Buffers that live as long as the parser: layers keep pointers to them until the build ends.
class Memory
{
public:
    void* allocate(int64_t sizeBytes); // zeroed; nullptr when there is none
private:
    struct Free
    {
        void operator()(void* p) const;
    };
    std::vector<std::unique_ptr<void, Free>> buffers_;
};

class WeightReader
{
public:
    using Warn = std::function<void(std::string const&)>;
    WeightReader(Memory& memory, Warn warn) : memory_(memory), warn_(std::move(warn)) {}
    void setModelPath(std::string const& path) { modelPath_ = path; }

    // Throws ImportError. Data that needs no conversion stays where it is: in `tensor`, which must outlive the result.
    Constant read(tw_onnx::TensorProto const& tensor, std::string const& what);

private:
    std::string_view bytesOf(tw_onnx::TensorProto const& tensor, std::string const& what);
    std::string_view readExternal(tw_onnx::TensorProto const& tensor, std::string const& what);

    Memory& memory_;
    Warn warn_;
    std::string modelPath_;
    bool warnedInt64_ = false, warnedClamp_ = false, warnedDouble_ = false, warnedUint8_ = false;
};

// False for types that 8.5 cannot import. INT64 -> kINT32, DOUBLE -> kFLOAT.
bool dataTypeOf(int onnxType, DataType& type);
std::string onnxTypeName(int onnxType);
int64_t sizeOf(DataType type);

float halfToFloat(uint16_t h);
uint16_t floatToHalf(float f);

} // namespace tw::onnx
