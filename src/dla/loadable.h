// SPDX-License-Identifier: Apache-2.0
// A loadable: what a build with EngineCapability::kDLA_STANDALONE gives and libcudla runs. Ours, for the model of a DLA; no
// device takes it. Little endian:
//   magic (8 bytes), version, model, number of tensors, 0 (u32 each), offset and bytes of the plan, bytes of the file, hash
//   (u64 each); the tensors, inputs first, a record of kRecordBytes each; the plan of an engine at its offset.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dla/model.h"

namespace tw::dla {

inline constexpr char kLoadableMagic[8] = {'T', 'W', 'D', 'L', 'A', 'M', '\r', '\n'};
inline constexpr uint32_t kLoadableVersion = 1;
inline constexpr size_t kMostNameBytes = 80; // cuDLA's limit

struct LoadableTensor
{
    std::string name;
    bool isInput = false;
    int32_t type = 0, format = 0;            // numbers of nvinfer1::DataType and TensorFormat
    int64_t n = 1, c = 1, h = 1, w = 1;      // as the network has them, vectors not counted
    int64_t sizeBytes = 0;                   // with what rows and vectors are padded by
    std::array<int64_t, 4> strideBytes = {}; // of w, h, c (a vector of channels), n
    bool operator==(LoadableTensor const&) const = default;
};

struct Loadable
{
    Model model = Model::kNone;
    std::vector<LoadableTensor> tensors; // inputs first
    std::string_view plan;               // of an engine; borrowed
};

bool isLoadable(void const* bytes, size_t sizeBytes);
// Errors: names that are too long for cuDLA.
Result<std::string> pack(Loadable const& loadable);
// Of the bytes of a loadable, its header's at least, without the hash field.
uint64_t loadableHash(void const* bytes, size_t sizeBytes);
// Where that stands.
inline constexpr size_t kLoadableHashOffset = 48;
// Checks everything before it is used; the plan lies in `bytes` and is for the plan's reader to check. Alignment: that of
// plans (256) from `bytes` on.
Result<Loadable> unpack(void const* bytes, size_t sizeBytes);

} // namespace tw::dla
