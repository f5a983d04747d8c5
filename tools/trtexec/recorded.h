// SPDX-License-Identifier: Apache-2.0
// Tensors that were recorded in files: ONNX TensorProto (.pb, .pb.gz) and NumPy archives (.npz).
// Every reader takes hostile bytes: it checks each size before use and throws Failure with the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tw::trtexec {

enum class ElementKind
{
    kFloat,
    kDouble,
    kHalf,
    kInt8,
    kInt16,
    kInt32,
    kInt64,
    kUint8,
    kUint16,
    kUint32,
    kUint64,
    kBool
};

size_t elementSize(ElementKind kind);

struct RecordedTensor
{
    std::string name;
    std::vector<int64_t> dims;
    ElementKind kind = ElementKind::kFloat;
    std::vector<std::byte> data; // [dims], rows contiguous, little endian

    size_t count() const { return data.size() / elementSize(kind); }
    double at(size_t index) const;
};

double halfToDouble(uint16_t bits);
uint16_t doubleToHalf(double value); // ties to even, overflow to infinity

// Number of elements, or Failure when a dimension is negative or the product times `size` is above the file limit.
size_t checkedCount(std::span<const int64_t> dims, size_t size, const std::string& what);

RecordedTensor readTensorProto(std::span<const std::byte> bytes, const std::string& what);
std::vector<RecordedTensor> readNpz(std::span<const std::byte> bytes, const std::string& what);
RecordedTensor readNpy(std::span<const std::byte> bytes, const std::string& what);

// Inflates at most `limitBytes`. windowBits as zlib counts them: 31 for gzip, -15 for raw deflate.
std::vector<std::byte> inflateAll(std::span<const std::byte> bytes, int windowBits, size_t limitBytes,
                                  const std::string& what);

// `path` is an .npz file, or a folder with <prefix>_0.pb[.gz], <prefix>_1.pb[.gz], ...
std::vector<RecordedTensor> readRecorded(const std::string& path, const std::string& prefix);

// For each of `names` the index of its tensor: by name when every name is there, else by position when the counts
// agree.
std::vector<size_t> matchRecorded(std::span<const RecordedTensor> tensors, std::span<const std::string> names,
                                  const std::string& path);

} // namespace tw::trtexec
