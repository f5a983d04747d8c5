// SPDX-License-Identifier: Apache-2.0
// The text form of a graph, for pass tests, bug reports and the failure shrinker. It carries all of Graph but the
// elements that inference finds again, and parses back:
//
//   graph "g" imported {
//     symbol N 1..32                    # "bound" after it: a node sets it at run time
//     input %0 "x" f32[N,2]             # after it: host, quantized(...), content [...]
//     const %1 "w" f32[2,2] = [1, 0, 0, 1] layer "fc" role 0 weights "fc.w"
//     node 4 "fc" matrix_multiply(%0, %1, _) {a = 0, b = 0}
//       layers ["fc", "fc_bias"] precision f16 user wish 0 f16 user device 1:0 user
//       region graph ... body graph ...
//       -> %2 "y" f32[N,2]
//     output %2
//   }
//
// `_` is an optional input that is not given. Elements of a constant: a list, `splat v`, `hex "..."` (bytes in memory
// order) or blob(hash, bytes). A float written as 0x... gives its bits. `#` starts a comment. Attributes that are left
// out keep their default, and so does every optional clause; a node without `layers` comes from the layer of its name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/blob.h"
#include "base/result.h"
#include "ir/graph.h"

namespace tw::ir {

using OpResolver = OpDef const* (*)(std::string_view name);
using BlobTable = std::map<uint64_t, BlobPtr>; // by hashBytes()

// Same graph, same text. With a table, contents of constants above 1 KiB go there and the text names them by hash;
// without one they are written as hex.
std::string print(Graph const& g, BlobTable* large = nullptr);

// Infers every node and verifies the graph. The text may be untrusted: errors name the line.
Result<std::unique_ptr<Graph>> parse(std::string const& text, OpResolver resolve, BlobTable const* large = nullptr);

} // namespace tw::ir
