// SPDX-License-Identifier: Apache-2.0
// Tensors that were recorded in files: ONNX TensorProto (.pb, .pb.gz) and NumPy archives (.npz).
// Every reader takes untrusted bytes: it checks each size before use and throws Failure with the reason.
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
size_t checkedCount(std::span<int64_t const> dims, size_t size, std::string const& what);

RecordedTensor readTensorProto(std::span<std::byte const> bytes, std::string const& what);
std::vector<RecordedTensor> readNpz(std::span<std::byte const> bytes, std::string const& what);
RecordedTensor readNpy(std::span<std::byte const> bytes, std::string const& what);

// Inflates at most `limitBytes`. windowBits as zlib counts them: 31 for gzip, -15 for raw deflate.
std::vector<std::byte> inflateAll(std::span<std::byte const> bytes, int windowBits, size_t limitBytes,
                                  std::string const& what);

// `path` is an .npz file, or a folder with <prefix>_0.pb[.gz], <prefix>_1.pb[.gz], ...
std::vector<RecordedTensor> readRecorded(std::string const& path, std::string const& prefix);

// For each of `names` the index of its tensor: by name when every name is there, else by position when the counts
// agree.
std::vector<size_t> matchRecorded(std::span<RecordedTensor const> tensors, std::span<std::string const> names,
                                  std::string const& path);

} // namespace tw::trtexec
