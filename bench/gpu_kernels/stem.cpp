// SPDX-License-Identifier: Apache-2.0
// The first convolution.
#include "kernels/cuda/conv/stem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness.h"
#include "kernels/cuda/common/hopper.h"

namespace bench {

namespace {

namespace stem = cuda::stem_f16;

Result<Row> run(Gpu& gpu, stem::Spec const& spec, stem::Shape const& g, bool timed, Kernel const& kernel)
{
    Row row;
    row.label = kernel.label;
    int64_t const taps = spec.filterRows() * spec.filterW, padded = spec.paddedK();
    size_t const sizeX = size_t(g.n * g.h * g.w * spec.channels), sizeF = size_t(g.k * padded),
                 sizeY = size_t(g.n * g.outH * g.outW * g.k);
    float const scale = float(std::pow(double(taps), -0.25)) * 1.7f;
    auto const x = randomHalves(sizeX, 1, scale), real = randomHalves(size_t(g.k * taps), 2, scale); // [k, c, r, s]
    std::vector<uint16_t> f(sizeF);
    for (int64_t i = 0; i < g.k * taps; ++i)
        f[size_t(i / taps * padded + i % taps / spec.filterW * 8 + i % spec.filterW + spec.shift())] = real[size_t(i)];
    auto const bias = randomFloats(size_t(g.k), 4, 1);
    double const bytes = double(sizeX + sizeF + sizeY) * 2;
    int const copies = timed ? int(std::clamp(200e6 / bytes, 2.0, 48.0)) : 1;
    TW_ASSIGN(auto const atX, gpu.upload(x.data(), sizeX * 2, copies));
    TW_ASSIGN(auto const atF, gpu.upload(f.data(), sizeF * 2, copies));
    TW_ASSIGN(auto const atBias, gpu.upload(bias.data(), bias.size() * 4, 1));
    TW_ASSIGN(auto const atY, gpu.poisoned(size_t(strideOf(sizeY * 2)) * size_t(copies)));
    stem::Launch const l = stem::launch(spec, g);
    TW_ASSIGN(auto function, gpu.load(kernel, l.geometry.sharedBytes));
    auto enqueue = [&](int i) -> Result<void> {
        uint64_t const n = uint64_t(i % copies);
        stem::Args a = l.args;
        a.x = reinterpret_cast<void const*>(atX + n * uint64_t(strideOf(sizeX * 2)));
        a.filters = reinterpret_cast<void const*>(atF + n * uint64_t(strideOf(sizeF * 2)));
        a.y = reinterpret_cast<void*>(atY + n * uint64_t(strideOf(sizeY * 2)));
        a.bias = reinterpret_cast<float const*>(atBias);
        void* parameters[] = {&a};
        return gpu.launch(function, l.geometry, parameters, true);
    };
    TW_TRY(enqueue(0));
    std::vector<uint16_t> y(sizeY);
    TW_TRY(gpu.download(y.data(), atY, sizeY * 2));
    std::vector<Expected> expected;
    size_t const step = std::max<size_t>(sizeY / 100000, 1) | 1;
    for (size_t at = 0; at < sizeY; at += step) {
        int64_t const filter = int64_t(at) % g.k, q = int64_t(at) / g.k % g.outW,
                      p = int64_t(at) / g.k / g.outW % g.outH, n = int64_t(at) / g.k / g.outW / g.outH;
        double sum = bias[size_t(filter)];
        for (int64_t i = 0; i < taps; ++i) {
            int64_t const s = i % spec.filterW, r = i / spec.filterW % spec.filterH,
                          c = i / spec.filterW / spec.filterH;
            int64_t const h = p * spec.strideH - g.padH + r, w = q * 2 - spec.padW + s;
            if (h >= 0 && h < g.h && w >= 0 && w < g.w)
                sum += double(halfToFloat(x[size_t(((n * spec.channels + c) * g.h + h) * g.w + w)])) *
                       halfToFloat(real[size_t(filter * taps + i)]);
        }
        expected.push_back({at, sum > 0 ? sum : 0});
    }
    compare(row, y, expected);
    if (timed && !row.failed) {
        TW_ASSIGN(row.us, gpu.time(std::max(copies, 16), enqueue));
        row.teraflops = 2.0 * double(sizeY) * double(taps) / row.us * 1e-6;
        row.gigabytes = bytes / row.us * 1e-3;
    }
    return row;
}

} // namespace

void stemCases(std::vector<Case>& cases)
{
    auto add = [&](std::string const& what, stem::Spec s, int64_t n, int64_t h, int64_t w, int64_t k, int64_t padH,
                   bool timed) {
        s.activation = cuda::kRelu;
        s.aligned = k % 8 == 0;
        stem::Shape g;
        g.n = n;
        g.h = h;
        g.w = w;
        g.k = k;
        g.padH = padH;
        g.outH = (h + 2 * padH - s.filterH) / s.strideH + 1;
        g.outW = (w + 2 * s.padW - s.filterW) / 2 + 1;
        if (char const* why = stem::unsupported(s, g)) {
            std::printf("not a case: %s: %s\n", what.c_str(), why);
            return;
        }
        Kernel kernel{what + " " + s.name(), stem::source(s), stem::kKernel};
        cases.push_back({kernel.label, {kernel}, [=](Gpu& gpu) { return run(gpu, s, g, timed, kernel); }});
    };
    stem::Spec s;
    s.rows = 3;
    s.columns = 3;
    add("check stem 7x7", s, 2, 53, 104, 72, 3, false);
    s.filterH = s.filterW = 3;
    s.padW = 0;
    s.tileN = 32;
    add("check stem 3x3", s, 2, 53, 104, 36, 0, false);
    s.padW = 1;
    s.channels = 4;
    s.columns = 2;
    add("check stem 3x3 padded", s, 2, 53, 104, 32, 1, false);
    for (int64_t n : {1, 32, 256})
        for (int rows : {1, 2, 4, 8, 16}) {
            stem::Spec t;
            t.rows = rows;
            if (n == 1 ? rows <= 4 : rows >= 4)
                add("stem batch " + std::to_string(n), t, n, 224, 224, 64, 3, true);
        }
}

} // namespace bench
