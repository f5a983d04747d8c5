// SPDX-License-Identifier: Apache-2.0
// Caffe's files: the network is a text, arrays are in binary files. What cannot be read is an ImportError.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tw_caffe {
class BlobProto;
class NetParameter;
} // namespace tw_caffe

namespace tw::caffe {

using Warn = std::function<void(std::string const&)>;

// The bytes of a file of at most `limit`; `what`: for errors, with `cure`, what to do about a file that is larger.
std::string readFile(char const* path, size_t limit, char const* what, char const* cure);

inline constexpr size_t kMostTextBytes = size_t(64) << 20; // of a network's text: large ones have some 200 kB

// A network's text. Fields that this reader does not know are skipped; those that could matter are warned of.
void readNetwork(std::string_view text, tw_caffe::NetParameter& net, Warn const& warn);

void readBlob(std::string_view bytes, tw_caffe::BlobProto& blob, std::string const& what);

// What a binary model has of a layer: its name, and arrays as they lie in the file.
struct ModelLayer
{
    std::string_view name;
    std::vector<std::string_view> blobs;
};
// Points into `bytes`.
std::vector<ModelLayer> readModel(std::string_view bytes);

} // namespace tw::caffe
