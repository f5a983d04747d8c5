// SPDX-License-Identifier: Apache-2.0
// Convolutions by mma.sync.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/conv/mma_2d.h"

namespace bench {

namespace {

namespace conv = cuda::conv_2d;

Result<Row> run(Gpu& gpu, conv::Spec const& spec, cuda::ConvShape const& g, bool timed, Kernel const& kernel)
{
    Row row;
    row.label = kernel.label;
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups, k = groupC * g.r * g.s, padded = paddedK(g);
    size_t const sizeX = size_t(g.n * g.h * g.w * g.c), sizeF = size_t(g.k * padded),
                 sizeY = size_t(g.n * g.outH * g.outW * g.k);
    float const scale = float(std::pow(double(k), -0.25)) * 1.7f;
    auto const x = randomHalves(sizeX, 1, scale), residual = randomHalves(spec.residual ? sizeY : 8, 3, 1);
    auto f = randomHalves(sizeF, 2, scale);
    for (int64_t i = 0; i < g.k; ++i)
        std::fill(f.begin() + i * padded + k, f.begin() + (i + 1) * padded, uint16_t(0));
    auto const bias = randomFloats(size_t(g.k), 4, 1);
    double const bytes = double(sizeX + sizeF + sizeY * (spec.residual ? 2 : 1)) * 2;
    int const copies = timed ? int(std::clamp(200e6 / bytes, 2.0, 48.0)) : 1;
    TW_ASSIGN(auto const atX, gpu.upload(x.data(), sizeX * 2, copies));
    TW_ASSIGN(auto const atF, gpu.upload(f.data(), sizeF * 2, copies));
    TW_ASSIGN(auto const atResidual, gpu.upload(residual.data(), residual.size() * 2, spec.residual ? copies : 1));
    TW_ASSIGN(auto const atBias, gpu.upload(bias.data(), bias.size() * 4, 1));
    TW_ASSIGN(auto const atY, gpu.poisoned(size_t(strideOf(sizeY * 2)) * size_t(copies)));
    auto const l = conv::launch<conv::HalfArgs>(spec, g);
    TW_ASSIGN(auto function, gpu.load(kernel, l.geometry.sharedBytes));
    auto enqueue = [&](int i) -> Result<void> {
        uint64_t const n = uint64_t(i % copies);
        conv::HalfArgs a = l.args;
        a.x = reinterpret_cast<void const*>(atX + n * uint64_t(strideOf(sizeX * 2)));
        a.filters = reinterpret_cast<void const*>(atF + n * uint64_t(strideOf(sizeF * 2)));
        a.y = reinterpret_cast<void*>(atY + n * uint64_t(strideOf(sizeY * 2)));
        a.bias = reinterpret_cast<float const*>(atBias);
        a.residual = reinterpret_cast<void const*>(atResidual + n * uint64_t(strideOf(sizeY * 2)));
        void* parameters[] = {&a};
        return gpu.launch(function, l.geometry, parameters, true);
    };
    TW_TRY(enqueue(0));
    std::vector<uint16_t> y(sizeY);
    TW_TRY(gpu.download(y.data(), atY, sizeY * 2));
    std::vector<Expected> expected;
    size_t const limit = size_t(std::clamp(4e7 / double(k), 2000.0, 60000.0)),
                 step = std::max<size_t>(sizeY / limit, 1) | 1;
    for (size_t at = 0; at < sizeY; at += step) {
        int64_t const filter = int64_t(at) % g.k, q = int64_t(at) / g.k % g.outW,
                      p = int64_t(at) / g.k / g.outW % g.outH, n = int64_t(at) / g.k / g.outW / g.outH,
                      c0 = filter / groupK * groupC;
        double sum = bias[size_t(filter)];
        for (int64_t r = 0; r < g.r; ++r)
            for (int64_t s = 0; s < g.s; ++s)
                for (int64_t c = 0; c < groupC; ++c) {
                    int64_t const h = p * g.strideH - g.padH + r * g.dilationH,
                                  w = q * g.strideW - g.padW + s * g.dilationW;
                    if (h < 0 || h >= g.h || w < 0 || w >= g.w)
                        continue;
                    int64_t const inX =
                        spec.nchw ? ((n * g.c + c0 + c) * g.h + h) * g.w + w : ((n * g.h + h) * g.w + w) * g.c + c0 + c;
                    int64_t const inF = spec.nchw ? (c * g.r + r) * g.s + s : (r * g.s + s) * groupC + c;
                    sum += double(halfToFloat(x[size_t(inX)])) * halfToFloat(f[size_t(filter * padded + inF)]);
                }
        if (spec.residual)
            sum += halfToFloat(residual[at]);
        expected.push_back({at, std::max(0.0, sum)});
    }
    compare(row, y, expected);
    if (timed && !row.failed) {
        TW_ASSIGN(row.us, gpu.time(std::max(copies, 16), enqueue));
        row.teraflops = 2.0 * double(sizeY) * double(k) / row.us * 1e-6;
        row.gigabytes = bytes / row.us * 1e-3;
    }
    return row;
}

cuda::ConvShape convShape(int64_t n, int64_t c, int64_t hw, int64_t k, int64_t rs, int stride, int pad,
                          int64_t groups = 1, int dilation = 1)
{
    cuda::ConvShape g;
    g.n = n;
    g.c = c;
    g.h = g.w = hw;
    g.k = k;
    g.r = g.s = rs;
    g.strideH = g.strideW = stride;
    g.padH = g.padW = pad;
    g.dilationH = g.dilationW = dilation;
    g.groups = groups;
    g.outH = g.outW = (hw + 2 * pad - (rs - 1) * dilation - 1) / stride + 1;
    return g;
}

} // namespace

void convCases(std::vector<Case>& cases)
{
    auto add = [&](std::string const& what, conv::Spec s, cuda::ConvShape const& g, bool timed) {
        s.activation = cuda::kRelu;
        s.vector = std::min(s.vector, vectorOf(g, s.nchw, conv::mostVector(s.kind)));
        s.aligned = g.k / g.groups % 8 == 0;
        if (char const* why = conv::unsupported(s, g)) {
            std::printf("not a case: %s: %s\n", what.c_str(), why);
            return;
        }
        Kernel k{what + " " + s.name(), conv::source(s), conv::kKernel};
        cases.push_back({k.label, {k}, [=](Gpu& gpu) { return run(gpu, s, g, timed, k); }});
    };
    conv::Spec s;
    s.tileM = 128;
    s.vector = 8;
    conv::Spec nchw = s;
    nchw.nchw = true;
    add("check mma 8 channels at once", s, convShape(2, 72, 19, 96, 3, 1, 1), false);
    add("check mma 4", s, convShape(2, 20, 19, 96, 3, 2, 1), false);
    add("check mma 2", s, convShape(2, 6, 19, 40, 3, 1, 1), false);
    add("check mma 1", s, convShape(2, 3, 19, 40, 5, 2, 2), false);
    add("check mma dilation", s, convShape(2, 8, 19, 40, 3, 1, 2, 1, 2), false);
    add("check mma groups", s, convShape(2, 64, 19, 128, 3, 1, 1, 4), false);
    add("check mma depthwise", s, convShape(2, 24, 19, 24, 3, 1, 1, 24), false);
    add("check mma NCHW 7x7", nchw, convShape(2, 3, 45, 64, 7, 2, 3), false);
    add("check mma NCHW patches", nchw, convShape(2, 3, 64, 96, 16, 16, 0), false);
    s.residual = true;
    s.tileN = 128;
    add("check mma residual", s, convShape(2, 72, 19, 100, 1, 2, 0), false);
    s.residual = false;
    struct Layer
    {
        char const* what;
        cuda::ConvShape g;
        bool nchw;
    };
    for (Layer const& l : {Layer{"stem batch 1", convShape(1, 3, 224, 64, 7, 2, 3), true},
                           Layer{"stem batch 32", convShape(32, 3, 224, 64, 7, 2, 3), true},
                           Layer{"stem batch 256", convShape(256, 3, 224, 64, 7, 2, 3), true},
                           Layer{"ViT patches batch 1", convShape(1, 3, 224, 768, 16, 16, 0), true},
                           Layer{"ViT patches batch 64", convShape(64, 3, 224, 768, 16, 16, 0), true},
                           Layer{"56x56 64->64 3x3 batch 1", convShape(1, 64, 56, 64, 3, 1, 1), false},
                           Layer{"56x56 64->64 3x3 batch 32", convShape(32, 64, 56, 64, 3, 1, 1), false},
                           Layer{"14x14 256->256 3x3 batch 32", convShape(32, 256, 14, 256, 3, 1, 1), false}})
        for (int tileN : {64, 128})
            for (int tileM : {64, 128}) {
                conv::Spec t;
                t.vector = 8;
                t.tileM = tileM;
                t.tileN = tileN;
                t.nchw = l.nchw;
                if (tileN <= l.g.k)
                    add(l.what, t, l.g, true);
            }
}

} // namespace bench
