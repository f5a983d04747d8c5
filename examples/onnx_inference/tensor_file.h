// SPDX-License-Identifier: Apache-2.0
// Reads the tensors that ONNX tests come with: a serialized TensorProto in a .pb or .pb.gz file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct TensorFile
{
    enum Type
    {
        kFloat32 = 1,
        kInt32 = 6,
        kInt64 = 7,
        kBool = 9,
    };
    int type = 0; // ONNX number
    std::vector<int64_t> dims;
    std::string bytes; // elements, little endian

    int64_t count() const
    {
        int64_t n = 1;
        for (int64_t d : dims)
            n *= d;
        return n;
    }
};

// False when the file does not exist; throws std::runtime_error when it cannot be read.
bool readTensorFile(std::string const& path, TensorFile& tensor);
