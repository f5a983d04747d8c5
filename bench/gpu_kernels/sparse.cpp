// SPDX-License-Identifier: Apache-2.0
// Products whose weights follow 2:4 by sparse wgmma, the dense kernels beside them on the same data: 4096^3, BERT-large's
// and the convolutions of ResNet-50, batch 256.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "gemm_shapes.h"
#include "harness.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/gemm/wgmma_sparse.h"

namespace bench {

namespace {

namespace dense = cuda::gemm_f16;
namespace sparse = cuda::gemm_sparse;

constexpr int64_t kStepK = sparse::stepOf(2); // of FP16

struct Layer
{
    char const* what;
    dense::Shape shape;
    bool image = false, residual = false;
};

// [n, k] halves, two of each four; k is [r, s, c] of an image.
std::vector<uint16_t> weightsOf(dense::Shape const& g, float scale)
{
    auto w = randomHalves(size_t(g.n * g.k), 2, scale);
    uint64_t s = 11;
    for (size_t i = 0; i < w.size(); i += 4) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        size_t const first = s >> 40 & 3, second = (first + 1 + (s >> 45) % 3) % 4;
        for (size_t j = 0; j < 4; ++j)
            if (j != first && j != second)
                w[i + j] = 0;
    }
    return w;
}

std::string packed(Layer const& l, std::vector<uint16_t> const& w)
{
    int64_t const c = l.image ? l.shape.image.c : l.shape.k, positions = l.shape.k / c,
                  padded = (c + kStepK - 1) / kStepK * kStepK;
    std::vector<uint16_t> rows(size_t(l.shape.n * positions * padded), 0);
    for (int64_t i = 0; i < l.shape.n * positions; ++i)
        std::copy_n(w.begin() + i * c, c, rows.begin() + i * padded);
    return sparse::packSparse(rows.data(), l.shape.n, positions * padded).value();
}

double sumOf(Layer const& l, std::vector<uint16_t> const& a, std::vector<uint16_t> const& w, int64_t m, int64_t n)
{
    dense::Shape const& g = l.shape;
    dense::Image const& i = g.image;
    double sum = 0;
    if (!l.image) {
        for (int64_t k = 0; k < g.k; ++k)
            sum += double(halfToFloat(a[size_t(m * g.k + k)])) * halfToFloat(w[size_t(n * g.k + k)]);
        return sum;
    }
    int64_t const q = m % i.outW, p = m / i.outW % i.outH, picture = m / i.outW / i.outH;
    for (int64_t r = 0; r < i.r; ++r)
        for (int64_t s = 0; s < i.s; ++s) {
            int64_t const y = p * i.strideH - i.padH + r, x = q * i.strideW - i.padW + s;
            if (y < 0 || y >= i.h || x < 0 || x >= i.w)
                continue;
            for (int64_t c = 0; c < i.c; ++c)
                sum += double(halfToFloat(a[size_t(((picture * i.h + y) * i.w + x) * i.c + c)])) *
                       halfToFloat(w[size_t(((n * i.r + r) * i.s + s) * i.c + c)]);
        }
    return sum;
}

// What a layer computes with, the same for all its kernels. Hundreds of MB for some: only the last layer's are kept.
struct Data
{
    std::string what;
    std::vector<uint16_t> a, w, residual;

    void take(Layer const& layer)
    {
        dense::Shape const& g = layer.shape;
        std::string const wanted = layer.what + std::string(layer.residual ? " residual" : "");
        if (what == wanted)
            return;
        what = wanted;
        float const scale = float(std::pow(double(g.k) / 2, -0.25)) * 1.7f;
        size_t const sizeA = layer.image ? size_t(g.image.n * g.image.h * g.image.w * g.image.c) : size_t(g.m * g.k);
        a = randomHalves(sizeA, 1, scale);
        w = weightsOf(g, scale);
        residual = randomHalves(layer.residual ? size_t(g.m * g.n) : 8, 3, 1);
    }
};

// One of the two kernels.
struct Choice
{
    std::optional<dense::Spec> dense;
    std::optional<sparse::Spec> sparse;
};

Result<Row> run(Gpu& gpu, Layer const& layer, Choice const& choice, bool timed, Kernel const& kernel, Data& data)
{
    dense::Shape const& g = layer.shape;
    Row row;
    row.label = kernel.label;
    data.take(layer);
    auto const &a = data.a, &w = data.w, &residual = data.residual;
    size_t const sizeA = a.size(), sizeY = size_t(g.m * g.n);
    auto const bias = randomFloats(size_t(g.n), 4, 1);
    std::string const weights =
        choice.sparse ? packed(layer, w) : std::string(reinterpret_cast<char const*>(w.data()), w.size() * 2);
    double const bytes = double(sizeA + sizeY * (layer.residual ? 2 : 1)) * 2 + double(weights.size());
    int const copies = timed ? int(std::clamp(200e6 / bytes, 2.0, 48.0)) : 1;
    TW_ASSIGN(auto const atA, gpu.upload(a.data(), sizeA * 2, copies));
    TW_ASSIGN(auto const atW, gpu.upload(weights.data(), weights.size(), copies));
    TW_ASSIGN(auto const atResidual, gpu.upload(residual.data(), residual.size() * 2, layer.residual ? copies : 1));
    TW_ASSIGN(auto const atBias, gpu.upload(bias.data(), bias.size() * 4, 1));
    TW_ASSIGN(auto const atY, gpu.poisoned(size_t(strideOf(sizeY * 2)) * size_t(copies)));
    dense::Launch denseLaunch;
    sparse::Launch l;
    if (choice.sparse) {
        l = sparse::launch(*choice.sparse, g, gpu.multiprocessors());
    } else {
        denseLaunch = dense::launch(*choice.dense, g, gpu.multiprocessors());
        static_cast<dense::Args&>(l.args) = denseLaunch.args;
        l.y = denseLaunch.y;
        l.geometry = denseLaunch.geometry;
    }
    TW_ASSIGN(auto function, gpu.load(kernel, l.geometry.sharedBytes));
    auto enqueue = [&](int i) -> Result<void> {
        uint64_t const n = uint64_t(i % copies);
        uint64_t const onA = atA + n * uint64_t(strideOf(sizeA * 2)),
                       onW = atW + n * uint64_t(strideOf(weights.size()));
        sparse::Args args = l.args;
        args.y = reinterpret_cast<void*>(atY + n * uint64_t(strideOf(sizeY * 2)));
        args.bias = reinterpret_cast<float const*>(atBias);
        args.residual = reinterpret_cast<void const*>(atResidual + n * uint64_t(strideOf(sizeY * 2)));
        args.weights = reinterpret_cast<void const*>(onW);
        cuda::TensorMap maps[4];
        std::vector<void*> parameters;
        if (choice.sparse) {
            TW_TRY(gpu.encode(maps[0], l.q, onA));
            parameters = {&maps[0]};
        } else {
            bool const swap = choice.dense->swap;
            TW_TRY(gpu.encode(maps[0], denseLaunch.p, swap ? onW : onA));
            TW_TRY(gpu.encode(maps[1], denseLaunch.q, swap ? onA : onW));
            parameters = {&maps[0], &maps[1]};
        }
        if (choice.sparse || choice.dense->copies) {
            TW_TRY(gpu.encode(maps[2], l.y, reinterpret_cast<uint64_t>(args.y)));
            parameters.push_back(&maps[2]);
            if (layer.residual) {
                TW_TRY(gpu.encode(maps[3], l.y, reinterpret_cast<uint64_t>(args.residual)));
                parameters.push_back(&maps[3]);
            }
        }
        parameters.push_back(&args); // the dense kernel's are the first of them
        return gpu.launch(function, l.geometry, parameters.data(), true);
    };
    TW_TRY(enqueue(0));
    std::vector<uint16_t> y(sizeY);
    TW_TRY(gpu.download(y.data(), atY, sizeY * 2));
    std::vector<Expected> expected;
    size_t const limit = size_t(std::clamp(2e7 / double(g.k), 2000.0, 40000.0)),
                 step = std::max<size_t>(sizeY / limit, 1) | 1;
    for (size_t at = 0; at < sizeY; at += step) {
        int64_t const n = int64_t(at) % g.n, m = int64_t(at) / g.n;
        double v = sumOf(layer, a, w, m, n) + bias[size_t(n)];
        if (layer.residual)
            v += halfToFloat(residual[at]);
        expected.push_back({at, std::max(v, 0.0)});
    }
    compare(row, y, expected);
    if (timed && !row.failed) {
        TW_ASSIGN(row.us, gpu.time(std::max(copies, 16), enqueue));
        row.teraflops = 2.0 * double(g.m) * double(g.n) * double(g.k) / row.us * 1e-6; // the zeros' count, too
        row.gigabytes = bytes / row.us * 1e-3;
    }
    return row;
}

template <class Spec>
Spec baseOf(Layer const& l)
{
    Spec s;
    s.image = l.image;
    s.residual = l.residual;
    s.activation = cuda::kRelu;
    s.aligned = true;
    return s;
}

void add(std::vector<Case>& cases, std::shared_ptr<Data> const& data, Layer const& l, Choice const& c, bool timed)
{
    std::string const name = c.sparse ? c.sparse->name() : c.dense->name();
    Kernel k{std::string(timed ? "sparse: " : "check sparse: ") + l.what + (l.residual ? " residual " : " ") + name,
             c.sparse ? source(*c.sparse) : source(*c.dense), c.sparse ? sparse::kKernel : dense::kKernel};
    cases.push_back({k.label, {k}, [=](Gpu& gpu) { return run(gpu, l, c, timed, k, *data); }});
}

} // namespace

void sparseCases(std::vector<Case>& cases)
{
    constexpr int kMultiprocessors = 132; // of an H200: what candidates are ordered for
    auto const data = std::make_shared<Data>();
    for (bool residual : {false, true})
        for (Layer const& l : {Layer{"odd", shape(333, 328, 200)}, Layer{"tiles", shape(3333, 1096, 200)},
                               Layer{"short", shape(3333, 1096, 64)}, Layer{"3x3", image(3, 19, 72, 96, 3, 1), true},
                               Layer{"3x3 stride 2", image(5, 19, 64, 520, 3, 2), true}})
            for (auto const& [p, q, stages, multicast] : {std::array{128, 256, 3, 1},
                                                          {256, 128, 4, 1},
                                                          {128, 128, 3, 1},
                                                          {64, 256, 2, 1},
                                                          {128, 240, 3, 2},
                                                          {256, 64, 4, 2},
                                                          {64, 64, 4, 1}}) {
                Layer with = l;
                with.residual = residual;
                auto s = baseOf<sparse::Spec>(with);
                s.tileP = p;
                s.tileQ = q;
                s.stages = stages;
                s.multicast = multicast;
                for (bool ahead : {false, true}) {
                    s.ahead = ahead;
                    add(cases, data, with, {std::nullopt, s}, false);
                }
            }
    for (Layer const& l : {Layer{"4096^3", shape(4096, 4096, 4096)},
                           Layer{"8192^3", shape(8192, 8192, 8192)},
                           Layer{"12288x1024x1024", shape(12288, 1024, 1024)},
                           Layer{"12288x4096x1024", shape(12288, 4096, 1024)},
                           Layer{"12288x1024x4096", shape(12288, 1024, 4096)},
                           Layer{"56 64->64 1x1", shape(802816, 64, 64)},
                           Layer{"56 64->64 3x3", image(256, 56, 64, 64, 3, 1), true},
                           Layer{"56 64->256 1x1", shape(802816, 256, 64), false, true},
                           Layer{"56 256->64 1x1", shape(802816, 64, 256)},
                           Layer{"56 128->128 3x3 /2", image(256, 56, 128, 128, 3, 2), true},
                           Layer{"28 128->128 3x3", image(256, 28, 128, 128, 3, 1), true},
                           Layer{"28 128->512 1x1", shape(200704, 512, 128), false, true},
                           Layer{"28 512->128 1x1", shape(200704, 128, 512)},
                           Layer{"56 256->512 1x1 /2", image(256, 56, 256, 512, 1, 2), true},
                           Layer{"28 256->256 3x3 /2", image(256, 28, 256, 256, 3, 2), true},
                           Layer{"14 256->256 3x3", image(256, 14, 256, 256, 3, 1), true},
                           Layer{"14 256->1024 1x1", shape(50176, 1024, 256), false, true},
                           Layer{"14 1024->256 1x1", shape(50176, 256, 1024)},
                           Layer{"14 512->512 3x3 /2", image(256, 14, 512, 512, 3, 2), true},
                           Layer{"7 512->512 3x3", image(256, 7, 512, 512, 3, 1), true},
                           Layer{"7 512->2048 1x1", shape(12544, 2048, 512), false, true},
                           Layer{"7 2048->512 1x1", shape(12544, 512, 2048)}}) {
        auto d = baseOf<dense::Spec>(l);
        d.copies = true;
        for (dense::Spec const& s : dense::candidates(d, l.shape, kMultiprocessors, 3))
            add(cases, data, l, {s, std::nullopt}, true);
        for (sparse::Spec s : sparse::candidates(baseOf<sparse::Spec>(l), l.shape, kMultiprocessors, 5))
            for (bool ahead : {false, true}) {
                s.ahead = ahead;
                add(cases, data, l, {std::nullopt, s}, true);
            }
    }
}

} // namespace bench
