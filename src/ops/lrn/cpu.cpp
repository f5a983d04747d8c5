// SPDX-License-Identifier: Apache-2.0
#include "base/element.h"
#include "ops/lrn/op.h"
#include "tactic/tactic.h"

namespace tw::ops::lrn {

namespace {

// kBlock positions of a plane at a time. The window is summed anew for each channel (at most 15 planes): a running sum
// would keep the infinity or NaN that has left the window.
template <class T>
void normalize(Attrs const& a, TensorRef const& x, TensorRef const& y)
{
    constexpr int64_t kBlock = 256;
    double sums[kBlock];
    int const rank = x.dims.rank;
    int64_t const channels = x.dims[rank - 3], plane = x.dims[rank - 2] * x.dims[rank - 1], reach = a.window / 2;
    double const k = a.k, scale = double(a.alpha) / double(a.window), beta = a.beta;
    T const* in = x.as<T>();
    T* out = y.as<T>();
    for (int64_t n = 0; n < x.dims.volume(0, rank - 3); ++n, in += channels * plane, out += channels * plane)
        for (int64_t first = 0; first < plane; first += kBlock) {
            int64_t const width = std::min(kBlock, plane - first);
            for (int64_t c = 0; c < channels; ++c) {
                std::fill(sums, sums + width, 0.0);
                for (int64_t j = std::max<int64_t>(c - reach, 0); j <= std::min(c + reach, channels - 1); ++j) {
                    T const* row = in + j * plane + first;
                    for (int64_t i = 0; i < width; ++i) {
                        double const v = loadElement(row[i]);
                        sums[i] += v * v;
                    }
                }
                T const* row = in + c * plane + first;
                T* to = out + c * plane + first;
                if (beta == 0.75) // the usual one: two square roots instead of a power
                    for (int64_t i = 0; i < width; ++i) {
                        double const root = std::sqrt(k + scale * sums[i]);
                        storeElement(to[i], double(loadElement(row[i])) / (root * std::sqrt(root)));
                    }
                else
                    for (int64_t i = 0; i < width; ++i)
                        storeElement(to[i], double(loadElement(row[i])) / std::pow(k + scale * sums[i], beta));
            }
        }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    withFloat(x.type, [&](auto element) { normalize<decltype(element)>(a, x, y); });
    return {};
}

constexpr PlainTactic kPlain{"lrn_any_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::lrn
