// SPDX-License-Identifier: Apache-2.0
// Attention from a packed q, k, v.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness.h"
#include "kernels/cuda/attention/mma_f16.h"
#include "kernels/cuda/attention/wgmma_f16.h"

namespace bench {

namespace {

namespace attention = cuda::attention_f16;
namespace wgmma = cuda::attention_wgmma_f16;

// `warpgroups`: that kernel instead, with spec's head, mask and causal.
Result<Row> run(Gpu& gpu, attention::Spec const& spec, wgmma::Spec const* warpgroups, attention::Shape const& g,
                bool timed, Kernel const& kernel)
{
    Row row;
    row.label = kernel.label;
    int64_t const d = spec.headDim, width = g.heads * d;
    size_t const sizeX = size_t(g.batch * g.sq * 3 * width), sizeY = size_t(g.batch * g.sq * width),
                 sizeMask = size_t(g.batch * g.sk);
    auto const x = randomHalves(sizeX, 1, 2), mask = randomHalves(sizeMask, 2, 4);
    double const bytes = double(sizeX + sizeY) * 2;
    int const copies = timed ? int(std::clamp(200e6 / bytes, 2.0, 48.0)) : 1;
    TW_ASSIGN(auto const atX, gpu.upload(x.data(), sizeX * 2, copies));
    TW_ASSIGN(auto const atMask, gpu.upload(mask.data(), sizeMask * 2, 1));
    TW_ASSIGN(auto const atY, gpu.poisoned(size_t(strideOf(sizeY * 2)) * size_t(copies)));
    cuda::LaunchGeometry const geometry = warpgroups ? wgmma::launch(*warpgroups, g) : attention::launch(spec, g);
    TW_ASSIGN(auto function, gpu.load(kernel, geometry.sharedBytes));
    float const scale = float(1 / std::sqrt(double(d)));
    auto enqueue = [&](int i) -> Result<void> {
        uint64_t const n = uint64_t(i % copies);
        attention::Args a =
            attention::packed(spec, g, reinterpret_cast<void const*>(atX + n * uint64_t(strideOf(sizeX * 2))));
        a.y = reinterpret_cast<void*>(atY + n * uint64_t(strideOf(sizeY * 2)));
        a.mask = reinterpret_cast<void const*>(atMask);
        a.maskStride = {g.sk, 0, 0};
        a.scale = scale;
        a = cuda::forKernel(a);
        void* parameters[] = {&a};
        if (warpgroups) {
            wgmma::Maps const m = wgmma::maps(*warpgroups, g, a);
            cuda::TensorMap q, k, v;
            TW_TRY(gpu.encode(q, m.q, cuda::addressOf(a.q)));
            TW_TRY(gpu.encode(k, m.k, cuda::addressOf(a.k)));
            TW_TRY(gpu.encode(v, m.v, cuda::addressOf(a.v)));
            void* with[] = {&q, &k, &v, &a};
            return gpu.launch(function, geometry, with, true);
        }
        return gpu.launch(function, geometry, parameters, true);
    };
    TW_TRY(enqueue(0));
    std::vector<uint16_t> y(sizeY);
    TW_TRY(gpu.download(y.data(), atY, sizeY * 2));
    std::vector<Expected> expected;
    int64_t const rows = g.batch * g.heads * g.sq, step = std::max<int64_t>(rows * g.sk * d / 20'000'000, 1) | 1;
    std::vector<double> p(size_t(g.sk));
    for (int64_t at = 0; at < rows; at += step) {
        int64_t const i = at % g.sq, head = at / g.sq % g.heads, batch = at / g.sq / g.heads;
        uint16_t const* const base = &x[size_t(batch * g.sq * 3 * width + head * d)];
        int64_t const seen = spec.masks.causal ? std::min(g.sk, i + 1 + g.sk - g.sq) : g.sk;
        double top = -1e30, sum = 0;
        for (int64_t j = 0; j < seen; ++j) {
            double s = 0;
            for (int64_t e = 0; e < d; ++e)
                s += double(halfToFloat(base[i * 3 * width + e])) * halfToFloat(base[j * 3 * width + width + e]);
            p[size_t(j)] = s * scale + (spec.masks.mask ? halfToFloat(mask[size_t(batch * g.sk + j)]) : 0);
            top = std::max(top, p[size_t(j)]);
        }
        for (int64_t j = 0; j < seen; ++j)
            sum += p[size_t(j)] = std::exp(p[size_t(j)] - top);
        for (int64_t e = 0; e < d; ++e) {
            double v = 0;
            for (int64_t j = 0; j < seen; ++j)
                v += p[size_t(j)] * halfToFloat(base[j * 3 * width + 2 * width + e]);
            expected.push_back({size_t((batch * g.sq + i) * width + head * d + e), v / sum});
        }
    }
    compare(row, y, expected, 2);
    if (timed && !row.failed) {
        TW_ASSIGN(row.us, gpu.time(std::max(copies, 16), enqueue));
        row.teraflops = 4.0 * double(g.sq * g.sk) * double(g.batch * width) / row.us * 1e-6;
        row.gigabytes = bytes / row.us * 1e-3;
    }
    return row;
}

} // namespace

void attentionCases(std::vector<Case>& cases)
{
    auto add = [&](std::string const& what, attention::Spec const& s, attention::Shape const& g, bool timed) {
        if (char const* why = attention::unsupported(s)) {
            std::printf("not a case: %s: %s\n", what.c_str(), why);
            return;
        }
        Kernel k{what + " " + s.name(), attention::source(s), attention::kKernel};
        cases.push_back({k.label, {k}, [=](Gpu& gpu) { return run(gpu, s, nullptr, g, timed, k); }});
    };
    auto addWgmma = [&](std::string const& what, wgmma::Spec const& w, attention::Shape const& g, bool timed) {
        if (char const* why = wgmma::unsupported(w)) {
            std::printf("not a case: %s %s: %s\n", what.c_str(), w.name().c_str(), why);
            return;
        }
        attention::Spec s;
        s.headDim = s.valueDim = w.headDim;
        s.masks = w.masks;
        Kernel k{what + " " + w.name(), wgmma::source(w), wgmma::kKernel};
        cases.push_back({k.label, {k}, [=](Gpu& gpu) { return run(gpu, s, &w, g, timed, k); }});
    };
    wgmma::Spec w;
    addWgmma("check warpgroup attention", w, {2, 3, 333, 333}, false);
    w.groups = 1;
    w.keys = 64;
    addWgmma("check warpgroup attention", w, {2, 3, 333, 333}, false);
    w.keys = 112;
    addWgmma("check warpgroup attention", w, {2, 3, 197, 197}, false);
    w.groups = 2;
    w.keys = 208;
    addWgmma("check warpgroup attention", w, {2, 3, 197, 197}, false);
    w.keys = 96;
    w.groups = 3;
    addWgmma("check warpgroup attention", w, {2, 3, 333, 333}, false);
    w = wgmma::Spec();
    w.masks.mask = true;
    addWgmma("check warpgroup attention", w, {2, 3, 333, 333}, false);
    w.masks.mask = false;
    w.masks.causal = true;
    addWgmma("check warpgroup attention", w, {2, 3, 333, 333}, false);
    w = wgmma::Spec();
    w.headDim = 128;
    addWgmma("check warpgroup attention", w, {2, 3, 333, 333}, false);
    for (int d : {16, 32, 48, 64, 80, 96, 112, 128}) {
        attention::Spec s;
        s.headDim = s.valueDim = d;
        add("check attention", s, {2, 3, 197, 197}, false);
    }
    attention::Spec s;
    s.masks.mask = true;
    add("check attention mask", s, {2, 3, 197, 197}, false);
    s.masks.mask = false;
    s.masks.causal = true;
    s.warps = 8;
    add("check attention causal", s, {2, 3, 261, 261}, false);
    s.warps = 2;
    s.keys = 128;
    add("check attention causal", s, {2, 3, 261, 261}, false);
    struct Layer
    {
        char const* what;
        attention::Shape g;
    };
    for (Layer const& l :
         {Layer{"BERT-base s128 batch 1", {1, 12, 128, 128}}, Layer{"BERT-large s384 batch 1", {1, 16, 384, 384}},
          Layer{"ViT-B batch 1", {1, 12, 197, 197}}, Layer{"BERT-base s128 batch 32", {32, 12, 128, 128}},
          Layer{"BERT-large s384 batch 32", {32, 16, 384, 384}}, Layer{"ViT-B batch 64", {64, 12, 197, 197}}}) {
        for (int groups : {1, 2, 3})
            for (int keys : {64, 96, 112, 128, 192, 208}) {
                wgmma::Spec t;
                t.groups = groups;
                t.keys = keys;
                if ((keys == 112 || keys == 208) == (l.g.sk == 197) && (groups < 3 || l.g.sk == 384) &&
                    keys <= l.g.sk + 15 && !wgmma::unsupported(t))
                    addWgmma(l.what, t, l.g, true);
            }
        for (int warps : {1, 2, 4, 8})
            for (int keys : {64, 128}) {
                if (warps == 1 && (keys != 128 || l.g.batch > 1))
                    continue;
                attention::Spec t;
                t.warps = warps;
                t.keys = keys;
                add(l.what, t, l.g, true);
            }
    }
}

} // namespace bench
