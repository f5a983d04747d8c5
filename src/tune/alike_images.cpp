// SPDX-License-Identifier: Apache-2.0
#include "tune/alike_images.h"

#include <algorithm>
#include <cstring>

#include "ir/op_def.h"
#include "tactic/domain.h"
#include "tune/alike_rows.h"
#include "tune/check.h"

namespace tw::tune {

namespace {

constexpr int64_t kLeastBytes = 8 << 20;      // of all inputs and outputs: below, whole tensors cost little
constexpr int64_t kLeastImageBytes = 4 << 10; // each is copied by itself
constexpr int64_t kLeastImages = 2 * AlikeImages::kOriginals;

// Nothing but its inputs' elements decides what it computes: no sizes, no state, no regions.
bool isPlain(ir::Node const& node)
{
    ir::OpDef const& op = *node.op;
    if (op.regions != ir::RegionKind::kNone || op.readsDimsOnly || (op.stateful && op.stateful(node)) ||
        (!op.reference && !node.body))
        return false;
    return op.reference || std::ranges::all_of(node.body->nodes, [](auto const& n) { return isPlain(*n); });
}

} // namespace

std::optional<AlikeImages> AlikeImages::of(ir::Node const& node, std::span<TensorRef const> inputs,
                                           std::span<TensorRef const> outputs, std::vector<bool> const& fixed,
                                           uint64_t seed)
{
    if (outputs.size() != 1 || outputs[0].dims.rank < 2 || AlikeRows::isOf(node) || !isPlain(node))
        return {};
    int64_t const count = outputs[0].dims[0];
    auto imageBytes = [&](TensorRef const& t) { return count > 0 ? t.sizeBytes() / count : 0; };
    AlikeImages out;
    int64_t bytes = outputs[0].sizeBytes();
    bool isWorthIt = count >= kLeastImages && imageBytes(outputs[0]) >= kLeastImageBytes, has = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
        TensorRef const& t = inputs[i];
        bool const isImages = t.data == nullptr && !fixed[i] && t.dims.rank >= 2 && t.dims[0] == count;
        out.hasImages_.push_back(isImages);
        has = has || isImages;
        bytes += isImages ? t.sizeBytes() : 0;
        isWorthIt =
            isWorthIt && (!isImages || (imageBytes(t) >= kLeastImageBytes && !domainOf(node, int(i)).ascending));
    }
    if (!isWorthIt || !has || bytes < kLeastBytes)
        return {};
    out.originals_ = repeatedOriginals(count, kOriginals, seed);
    return out;
}

void AlikeImages::repeat(TensorRef const& originals, TensorRef const& whole, Workers& workers) const
{
    auto const size = size_t(originals.sizeBytes() / kOriginals);
    workers.run(count(), [&](int64_t n, int) {
        std::memcpy(whole.as<char>() + size_t(n) * size, originals.as<char>() + size_t(original(n)) * size, size);
    });
}

} // namespace tw::tune
