// SPDX-License-Identifier: Apache-2.0
// Heads of queries are shared out; a pixel is a run of D numbers, which is added at once.
#include <algorithm>
#include <cmath>

#include "base/element.h"
#include "ops/deformable_attention/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::deformable_attention {

namespace {

constexpr int64_t kPiece = 64; // numbers of a head that are summed together

template <class T>
void attend(RunArgs& args, int64_t first, int64_t last)
{
    TensorRef const &value = args.inputs[kValue], &weights = args.inputs[kWeights], &y = args.outputs[0];
    int64_t const rows = value.dims[1], heads = value.dims[2], size = value.dims[3], queries = y.dims[1],
                  levels = weights.dims[3], points = weights.dims[4];
    auto const* const shapes = args.inputs[kShapes].as<int32_t>();
    auto const* const starts = args.inputs[kStarts].as<int32_t>();
    for (int64_t i = first; i < last; ++i) {
        T const* const image = value.as<T>() + (i / heads / queries * rows * heads + i % heads) * size;
        T const* const location = args.inputs[kLocations].as<T>() + 2 * i * levels * points;
        T const* const weight = weights.as<T>() + i * levels * points;
        for (int64_t begin = 0; begin < size; begin += kPiece) {
            int64_t const width = std::min(kPiece, size - begin);
            float sum[kPiece] = {};
            for (int64_t j = 0; j < levels * points; ++j) {
                int64_t const l = j / points, h = shapes[2 * l], w = shapes[2 * l + 1];
                float const x = std::fma(loadElement(location[2 * j]), float(w), -0.5F);
                float const v = std::fma(loadElement(location[2 * j + 1]), float(h), -0.5F);
                if (!(x > -1 && v > -1 && x < float(w) && v < float(h)))
                    continue;
                float const column = std::floor(x), line = std::floor(v), right = x - column, low = v - line;
                for (int k = 0; k < 4; ++k) {
                    int64_t const c = int64_t(column) + k % 2, r = int64_t(line) + k / 2, row = starts[l] + r * w + c;
                    if (c < 0 || r < 0 || c >= w || r >= h || row < 0 || row >= rows)
                        continue;
                    float const share = loadElement(weight[j]) * (k % 2 ? right : 1 - right) * (k / 2 ? low : 1 - low);
                    T const* const pixel = image + row * heads * size + begin;
                    for (int64_t d = 0; d < width; ++d)
                        sum[d] += share * loadElement(pixel[d]);
                }
            }
            T* const to = y.as<T>() + i * size + begin;
            for (int64_t d = 0; d < width; ++d)
                storeElement(to[d], sum[d]);
        }
    }
}

Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    if (y.count() == 0)
        return {};
    int64_t const all = y.dims.volume(0, 3), taps = 4 * args.inputs[kWeights].dims.volume(3, 5);
    inPieces(*args.workers, all, y.sizeBytes() * std::max<int64_t>(taps, 1), [&](int64_t begin, int64_t end) {
        withFloat(y.type, [&](auto element) { attend<decltype(element)>(args, begin, end); });
    });
    return {};
}

constexpr PlainTactic kPlain{"deformable_attention_any_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::deformable_attention
