// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions by wgmma.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "gemm_shapes.h"
#include "harness.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace bench {

namespace {

namespace gemm = cuda::gemm_f16;

struct Problem
{
    gemm::Spec spec;
    gemm::Shape shape;
    double (*activation)(double) = nullptr;
    bool timed = false;
    double libraryUs = 0;
};

constexpr float kEpsilon = 1e-5f;

double geluErf(double v)
{
    return 0.5 * v * (1 + std::erf(v * 0.70710678118654752));
}
double relu(double v)
{
    return v > 0 ? v : 0;
}

// One element of y before bias.
double product(Problem const& p, std::vector<uint16_t> const& a, std::vector<uint16_t> const& b, int64_t batch,
               int64_t m, int64_t n)
{
    gemm::Shape const& g = p.shape;
    gemm::Image const& i = g.image;
    double sum = 0;
    if (p.spec.image) {
        int64_t const q = m % i.outW, oh = m / i.outW % i.outH, image = m / i.outW / i.outH;
        for (int64_t r = 0; r < i.r; ++r)
            for (int64_t s = 0; s < i.s; ++s) {
                int64_t const h = oh * i.strideH - i.padH + r * i.dilationH,
                              w = q * i.strideW - i.padW + s * i.dilationW;
                if (h < 0 || h >= i.h || w < 0 || w >= i.w)
                    continue;
                uint16_t const* x = &a[size_t(((image * i.h + h) * i.w + w) * i.c)];
                uint16_t const* f = &b[size_t(((n * i.r + r) * i.s + s) * i.c)];
                for (int64_t c = 0; c < i.c; ++c)
                    sum += double(halfToFloat(x[c])) * halfToFloat(f[c]);
            }
        return sum;
    }
    int64_t const ba = batch * g.batchA, bb = batch * g.batchB;
    for (int64_t k = 0; k < g.k; ++k)
        sum += double(halfToFloat(a[size_t(ba + (p.spec.aAlongK ? m * g.k + k : k * g.m + m))])) *
               halfToFloat(b[size_t(bb + (p.spec.bAlongK ? n * g.k + k : k * g.n + n))]);
    return sum;
}

Result<Row> run(Gpu& gpu, Problem const& p, Kernel const& kernel)
{
    gemm::Shape const& g = p.shape;
    Row row;
    row.label = kernel.label;
    row.libraryUs = p.libraryUs;
    if (char const* why = gemm::unsupported(p.spec, g))
        return Error{ErrorCode::kInvalidArgument, kernel.label + ": " + why};
    bool const image = p.spec.image;
    size_t const sizeA = image ? size_t(g.image.n * g.image.h * g.image.w * g.image.c)
                               : size_t(g.m * g.k * (g.batchA ? g.batch : 1)),
                 sizeB = size_t(g.n * g.k * (g.batchB ? g.batch : 1)), sizeY = size_t(g.m * g.n * g.batch);
    float const scale = float(std::pow(double(g.k), -0.25)) * 1.7f; // y is about 1
    auto const a = randomHalves(sizeA, 1, scale), b = randomHalves(sizeB, 2, scale),
               residual = randomHalves(p.spec.residual ? sizeY : 8, 3, 1);
    auto const bias = randomFloats(size_t(g.n), 4, 1), gamma = randomFloats(size_t(g.n), 5, 1),
               beta = randomFloats(size_t(g.n), 6, 1);
    double const bytes = double(sizeA + sizeB + sizeY * (p.spec.residual ? 2 : 1)) * 2;
    int const copies = p.timed ? int(std::clamp(200e6 / bytes, 2.0, 48.0)) : 1;
    TW_ASSIGN(auto const atA, gpu.upload(a.data(), sizeA * 2, copies));
    TW_ASSIGN(auto const atB, gpu.upload(b.data(), sizeB * 2, copies));
    TW_ASSIGN(auto const atResidual, gpu.upload(residual.data(), residual.size() * 2, p.spec.residual ? copies : 1));
    TW_ASSIGN(auto const atBias, gpu.upload(bias.data(), bias.size() * 4, 1));
    TW_ASSIGN(auto const atGamma, gpu.upload(gamma.data(), gamma.size() * 4, 1));
    TW_ASSIGN(auto const atBeta, gpu.upload(beta.data(), beta.size() * 4, 1));
    TW_ASSIGN(auto const atY, gpu.poisoned(size_t(strideOf(sizeY * 2)) * size_t(copies)));
    gemm::Launch l = gemm::launch(p.spec, g, gpu.multiprocessors());
    TW_ASSIGN(auto function, gpu.load(kernel, l.geometry.sharedBytes));
    gemm::Norm norm;
    norm.gamma = reinterpret_cast<float const*>(atGamma);
    norm.beta = reinterpret_cast<float const*>(atBeta);
    norm.epsilon = kEpsilon;
    CUfunc_st* fill = nullptr;
    gemm::FillArgs fillArgs;
    if (p.spec.norm) {
        TW_ASSIGN(fill, gpu.load({kernel.label, kernel.source, gemm::kFillKernel}, 0));
        fillArgs.count = gemm::normParts(p.spec, g);
        TW_ASSIGN(uint64_t const parts, gpu.poisoned(size_t(fillArgs.count) * 8));
        norm.parts = fillArgs.parts = reinterpret_cast<uint64_t*>(parts);
        norm.rows = int32_t(gemm::normRows(p.spec, g));
    }
    auto enqueue = [&](int i) -> Result<void> {
        uint64_t const n = uint64_t(i % copies);
        uint64_t const onA = atA + n * uint64_t(strideOf(sizeA * 2)), onB = atB + n * uint64_t(strideOf(sizeB * 2));
        cuda::TensorMap maps[4];
        TW_TRY(gpu.encode(maps[0], l.p, p.spec.swap ? onB : onA));
        TW_TRY(gpu.encode(maps[1], l.q, p.spec.swap ? onA : onB));
        gemm::Args args = l.args;
        args.y = reinterpret_cast<void*>(atY + n * uint64_t(strideOf(sizeY * 2)));
        args.bias = reinterpret_cast<float const*>(atBias);
        args.residual = reinterpret_cast<void const*>(atResidual + n * uint64_t(strideOf(sizeY * 2)));
        std::vector<void*> parameters = {&maps[0], &maps[1]};
        if (p.spec.copies) {
            TW_TRY(gpu.encode(maps[2], l.y, reinterpret_cast<uint64_t>(args.y)));
            parameters.push_back(&maps[2]);
        }
        if (p.spec.copies && p.spec.residual) {
            TW_TRY(gpu.encode(maps[3], l.y, reinterpret_cast<uint64_t>(args.residual)));
            parameters.push_back(&maps[3]);
        }
        if (p.spec.norm) {
            parameters.push_back(&norm);
            cuda::LaunchGeometry geometry;
            geometry.grid = (fillArgs.count + 255) / 256;
            geometry.block = 256;
            void* fillParameters[] = {&fillArgs};
            TW_TRY(gpu.launch(fill, geometry, fillParameters, true));
        }
        parameters.push_back(&args);
        return gpu.launch(function, l.geometry, parameters.data(), true);
    };
    TW_TRY(enqueue(0));
    std::vector<uint16_t> y(sizeY);
    TW_TRY(gpu.download(y.data(), atY, sizeY * 2));
    // All of a small result, else rows at both ends and some between.
    std::vector<Expected> expected;
    auto finished = [&](size_t at) {
        int64_t const n = int64_t(at) % g.n, m = int64_t(at) / g.n % g.m, batch = int64_t(at) / g.n / g.m;
        double v = product(p, a, b, batch, m, n);
        if (p.spec.bias)
            v += bias[size_t(n)];
        if (p.spec.residual)
            v += halfToFloat(residual[at]);
        if (p.activation)
            v = p.activation(v);
        return v;
    };
    if (p.spec.norm) {
        int64_t const rows = std::clamp(int64_t(3e7 / double(g.k * g.n)), int64_t(4), g.m);
        for (int64_t i = 0; i < rows; ++i) {
            int64_t const m = rows == g.m ? i : i < rows / 2 ? g.m - 1 - i * 37 % g.m : i * (g.m / rows);
            std::vector<double> row(size_t(g.n));
            double mean = 0, variance = 0;
            for (int64_t n = 0; n < g.n; ++n) {
                row[size_t(n)] = finished(size_t(m * g.n + n));
                mean += row[size_t(n)] / double(g.n);
            }
            for (double v : row)
                variance += (v - mean) * (v - mean) / double(g.n);
            for (int64_t n = 0; n < g.n; ++n)
                expected.push_back(
                    {size_t(m * g.n + n),
                     (row[size_t(n)] - mean) / std::sqrt(variance + kEpsilon) * gamma[size_t(n)] + beta[size_t(n)]});
        }
    }
    size_t const limit = p.spec.norm ? 0 : size_t(std::clamp(4e7 / double(g.k), 2000.0, 60000.0));
    uint64_t s = 7;
    for (size_t i = 0; i < std::min(limit, sizeY); ++i) {
        size_t at = i;
        if (sizeY > limit) {
            s = s * 6364136223846793005ull + 1442695040888963407ull;
            at = size_t(s >> 16) % sizeY;
            if (i < 64)
                at = i;
            else if (i < 128)
                at = sizeY - 1 - (i - 64);
        }
        expected.push_back({at, finished(at)});
    }
    compare(row, y, expected);
    if (p.timed && !row.failed) {
        TW_ASSIGN(row.us, gpu.time(std::max(copies, 16), enqueue));
        row.teraflops = 2.0 * double(g.m) * double(g.n) * double(g.k) * double(g.batch) / row.us * 1e-6;
        row.gigabytes = bytes / row.us * 1e-3;
    }
    return row;
}

void add(std::vector<Case>& cases, std::string const& what, Problem const& p)
{
    if (char const* why = gemm::unsupported(p.spec, p.shape)) {
        std::printf("not a case: %s %s: %s\n", what.c_str(), p.spec.name().c_str(), why);
        return;
    }
    Kernel k{what + " " + p.spec.name(), gemm::source(p.spec), gemm::kKernel};
    cases.push_back({k.label, {k}, [p, k](Gpu& gpu) { return run(gpu, p, k); }});
}

gemm::Spec tile(int p, int q, int stages, int groups, int split = 1)
{
    gemm::Spec s;
    s.tileP = p;
    s.tileQ = q;
    s.stages = stages;
    s.groups = groups;
    s.split = split;
    return s;
}

void checks(std::vector<Case>& cases)
{
    // Each feature alone on a shape with edges everywhere.
    gemm::Shape const odd = shape(333, 328, 200);
    auto with = [&](char const* what, gemm::Spec s, gemm::Shape g, double (*f)(double) = nullptr) {
        if (f == geluErf)
            s.activation = cuda::kGeluErf;
        if (f == relu)
            s.activation = cuda::kRelu;
        add(cases, std::string("check ") + what, {s, g, f, false, 0});
    };
    with("plain", tile(128, 128, 4, 2), odd);
    with("one group", tile(64, 64, 4, 1), odd);
    with("wide", tile(128, 256, 4, 2), odd, geluErf);
    gemm::Spec s = tile(128, 128, 4, 2);
    s.residual = true;
    with("residual", s, odd, relu);
    with("residual, then relu", s, odd, relu);
    for (int q : {128, 256}) {
        s = tile(128, q, q == 256 ? 3 : 4, 2);
        s.copies = true;
        with("copies", s, odd, geluErf);
        with("copies, several tiles", s, shape(3333, 1096, 200), relu);
        with("copies, short", s, shape(3333, 1096, 64), relu);
        s.residual = true;
        with("copies, residual", s, odd, relu);
        with("copies, residual, several tiles", s, shape(3333, 1096, 200), relu);
        with("copies, residual, short", s, shape(3333, 1096, 64), relu);
        if (q == 256)
            continue;
        s.pingPong = true;
        with("copies, residual, ping-pong", s, shape(3333, 1096, 200), relu);
        gemm::Shape batches = shape(100, 96, 72);
        batches.batch = 5;
        batches.batchA = batches.m * batches.k;
        with("copies, residual, ping-pong, batches", s, batches, relu);
        s.multicast = 2;
        with("copies, residual, ping-pong, multicast", s, shape(3333, 1096, 200), relu);
    }
    s = tile(128, 128, 4, 2);
    s.pingPong = true;
    with("ping-pong", s, shape(3333, 1096, 200), relu);
    s = tile(128, 256, 4, 2);
    s.multicast = 2;
    with("multicast", s, shape(3333, 1096, 200), relu);
    s = tile(64, 64, 6, 1, 4);
    s.residual = true;
    with("split 4", s, odd, relu);
    with("split 8", tile(128, 64, 6, 2, 8), shape(128, 768, 3072), geluErf);
    with("split 2", tile(128, 128, 4, 2, 2), odd);
    s = tile(64, 16, 6, 1, 2);
    s.swap = true;
    s.residual = true;
    with("swapped", s, shape(7, 328, 520), relu);
    s = tile(128, 104, 3, 2);
    s.swap = true;
    s.residual = true;
    with("swapped, wide", s, shape(197, 328, 200), relu);
    s.aligned = false;
    with("swapped, unaligned", s, shape(197, 325, 200), relu);
    s = tile(128, 128, 4, 2);
    s.bAlongK = false;
    with("b [k, n]", s, odd);
    s.aAlongK = false;
    with("a [k, m], b [k, n]", s, shape(336, 328, 200));
    s = tile(128, 128, 4, 2);
    gemm::Shape g = shape(100, 96, 72);
    g.batch = 5;
    g.batchA = g.m * g.k;
    g.batchB = g.n * g.k;
    s.constantB = false;
    with("batches", s, g);
    s = tile(64, 64, 4, 1);
    s.aligned = false;
    s.residual = true;
    with("unaligned", s, shape(333, 323, 200));
    s = tile(128, 64, 4, 2);
    s.image = true;
    with("3x3", s, image(3, 19, 72, 96, 3, 1, 1), relu);
    with("3x3 stride 2", s, image(3, 19, 64, 96, 3, 2, 1), relu);
    with("1x1 stride 2", s, image(3, 19, 64, 96, 1, 2, 0), relu);
    s.multicast = 2;
    s.residual = true;
    with("3x3 multicast", s, image(3, 19, 72, 96, 3, 1, 1), relu);
    s = tile(64, 64, 6, 1, 4);
    s.image = true;
    with("3x3 split 4", s, image(1, 7, 64, 96, 3, 1, 1), relu);
}

gemm::Spec normTile(int p, int q, int stages, bool pingPong, int norm)
{
    gemm::Spec s = tile(p, q, stages, 2);
    s.pingPong = pingPong;
    s.norm = norm;
    s.copies = s.residual = true;
    return s;
}

void norms(std::vector<Case>& cases)
{
    auto with = [&](gemm::Spec s, gemm::Shape g, bool timed, double (*f)(double) = nullptr) {
        if (f == relu)
            s.activation = cuda::kRelu;
        add(cases,
            std::string(timed ? "norm" : "check norm") + " m" + std::to_string(g.m) + " n" + std::to_string(g.n) +
                " k" + std::to_string(g.k),
            {s, g, f, timed, 0});
    };
    with(normTile(128, 256, 3, false, 4), shape(333, 1024, 200), false);
    with(normTile(128, 256, 3, false, 4), shape(9001, 1024, 72), false, relu);
    with(normTile(128, 192, 3, false, 4), shape(333, 768, 328), false);
    with(normTile(64, 128, 6, true, 4), shape(3333, 512, 136), false);
    with(normTile(128, 256, 3, false, 3), shape(3333, 768, 200), false);
    with(normTile(128, 256, 3, false, 8), shape(333, 2048, 72), false);
    gemm::Spec s = normTile(128, 256, 3, false, 4);
    s.bAlongK = false;
    s.residual = false;
    s.bias = false;
    with(s, shape(3333, 1024, 64), false);
    for (int64_t k : {1024, 4096}) {
        gemm::Shape const g = shape(12288, 1024, k);
        with(normTile(128, 256, 3, false, 4), g, true);
        with(normTile(64, 256, 3, true, 4), g, true);
        s = normTile(128, 256, 3, false, 4);
        s.bAlongK = false;
        with(s, g, true);
    }
    for (int64_t k : {768, 3072}) {
        gemm::Shape const g = shape(4096, 768, k);
        with(normTile(128, 192, 4, false, 4), g, true);
        with(normTile(64, 192, 4, true, 4), g, true);
        with(normTile(128, 256, 3, false, 3), g, true);
    }
}

void timings(std::vector<Case>& cases)
{
    auto timed = [&](gemm::Spec s, gemm::Shape g, double libraryUs) {
        add(cases, std::to_string(g.m) + "x" + std::to_string(g.n) + "x" + std::to_string(g.k),
            {s, g, nullptr, true, libraryUs});
    };
    // Batch 1 of BERT and ViT.
    struct Small
    {
        int64_t m, n, k;
        double libraryUs;
    };
    for (Small const& s : {Small{128, 2304, 768, 5.6}, Small{128, 768, 768, 4.7}, Small{128, 3072, 768, 0},
                           Small{128, 768, 3072, 9.0}, Small{384, 4096, 1024, 0}, Small{384, 1024, 4096, 0}}) {
        gemm::Shape const g = shape(s.m, s.n, s.k);
        timed(tile(64, 64, 6, 1, 1), g, s.libraryUs);
        timed(tile(64, 64, 6, 1, 2), g, s.libraryUs);
        timed(tile(64, 64, 6, 1, 4), g, s.libraryUs);
        timed(tile(128, 64, 6, 2, 2), g, s.libraryUs);
        timed(tile(128, 64, 6, 2, 4), g, s.libraryUs);
        timed(tile(128, 128, 6, 2, 4), g, s.libraryUs);
    }
    struct Large
    {
        int64_t m, n, k;
        double libraryTeraflops;
    };
    for (Large const& s : {Large{4096, 2304, 768, 567}, Large{4096, 768, 3072, 675}, Large{12288, 4096, 1024, 595},
                           Large{4096, 4096, 4096, 651}, Large{8192, 8192, 8192, 737}}) {
        gemm::Shape const g = shape(s.m, s.n, s.k);
        double const us = 2.0 * double(s.m) * double(s.n) * double(s.k) / s.libraryTeraflops * 1e-6;
        timed(tile(128, 256, 4, 2), g, us);
        timed(tile(128, 192, 4, 2), g, us);
        timed(tile(256, 128, 4, 2), g, us);
        gemm::Spec t = tile(128, 256, 4, 2);
        t.multicast = 2;
        timed(t, g, us);
        t = tile(128, 128, 6, 2);
        t.pingPong = true;
        timed(t, g, us);
        t.multicast = 2;
        timed(t, g, us);
        t = tile(128, 128, 4, 2, 2);
        if (s.n < 1000)
            timed(t, g, us);
    }
}

void convolutions(std::vector<Case>& cases)
{
    for (gemm::Shape const& g : {shape(6272, 256, 1024), shape(6272, 256, 2304), shape(25088, 128, 1152)})
        for (gemm::Spec s : {tile(128, 128, 6, 2), tile(64, 128, 3, 1), tile(128, 64, 4, 2)}) {
            s.activation = cuda::kRelu;
            add(cases, "as a product " + std::to_string(g.m) + "x" + std::to_string(g.n) + "x" + std::to_string(g.k),
                {s, g, relu, true, 0});
        }
    auto timed = [&](char const* what, gemm::Spec s, gemm::Shape const& g) {
        s.image = true;
        s.activation = cuda::kRelu;
        add(cases, what, {s, g, relu, true, 0});
    };
    for (int64_t n : {1, 32}) {
        std::string const batch = " batch " + std::to_string(n);
        struct Layer
        {
            char const* what;
            int64_t hw, c, k, rs;
            int stride, pad;
        };
        for (Layer const& l :
             {Layer{"56x56 64->64 3x3", 56, 64, 64, 3, 1, 1}, Layer{"28x28 128->128 3x3", 28, 128, 128, 3, 1, 1},
              Layer{"14x14 256->256 3x3", 14, 256, 256, 3, 1, 1}, Layer{"7x7 512->512 3x3", 7, 512, 512, 3, 1, 1},
              Layer{"56x56 64->256 1x1", 56, 64, 256, 1, 1, 0}, Layer{"14x14 1024->256 1x1", 14, 1024, 256, 1, 1, 0}}) {
            gemm::Shape const g = image(n, l.hw, l.c, l.k, l.rs, l.stride, l.pad);
            std::string const what = l.what + batch;
            if (n == 1) {
                for (int split : {1, 2, 4, 8})
                    timed(what.c_str(), tile(64, 64, 6, 1, split), g);
                for (int split : {2, 4})
                    timed(what.c_str(), tile(64, 32, 8, 1, split), g);
            } else {
                timed(what.c_str(), tile(128, 64, 4, 2), g);
                timed(what.c_str(), tile(64, 128, 3, 1), g);
                timed(what.c_str(), tile(128, 128, 6, 2), g);
                timed(what.c_str(), tile(128, 128, 6, 2, 2), g);
                gemm::Spec t = tile(128, 64, 6, 2);
                t.pingPong = true;
                timed(what.c_str(), t, g);
                t = tile(128, 128, 6, 2);
                t.pingPong = true;
                timed(what.c_str(), t, g);
            }
        }
    }
}

// The first choices for shapes of whole networks.
void choices(std::vector<Case>& cases)
{
    auto product = [&](int64_t m, int64_t n, int64_t k, bool residual, bool gelu) {
        gemm::Spec base;
        base.residual = residual;
        if (gelu)
            base.activation = cuda::kGeluErf;
        gemm::Shape const g = shape(m, n, k);
        base.copies = true;
        for (gemm::Spec const& s : gemm::candidates(base, g, 132, 8))
            add(cases,
                "choice m" + std::to_string(m) + " n" + std::to_string(n) + " k" + std::to_string(k) +
                    (residual ? " residual"
                     : gelu   ? " gelu"
                              : ""),
                {s, g, gelu ? geluErf : nullptr, true, 0});
    };
    product(1, 1000, 2048, false, false);
    for (int64_t m : {128, 197}) {
        product(m, 2304, 768, false, false);
        product(m, 768, 768, true, false);
        product(m, 3072, 768, false, true);
        product(m, 768, 3072, true, false);
    }
    product(4096, 768, 768, true, false);
    product(4096, 3072, 768, false, true);
    product(4096, 768, 3072, true, false);
    product(12608, 2304, 768, false, false);
    product(12608, 3072, 768, false, true);
    for (int64_t m : {384, 12288}) {
        product(m, 3072, 1024, false, false);
        product(m, 1024, 1024, true, false);
        product(m, 4096, 1024, false, true);
        product(m, 1024, 4096, true, false);
    }
    auto expand = [&](int64_t n, int64_t hw, int64_t c, int64_t k, int64_t rs, bool residual) {
        gemm::Spec base;
        base.image = true;
        base.residual = residual;
        base.activation = cuda::kRelu;
        gemm::Shape const g = image(n, hw, c, k, rs, 1, rs / 2);
        for (gemm::Spec const& s : gemm::candidates(base, g, 132, n == 1 ? 8 : 3))
            add(cases,
                "choice b" + std::to_string(n) + " " + std::to_string(hw) + "x" + std::to_string(hw) + " " +
                    std::to_string(c) + "->" + std::to_string(k) + " " + std::to_string(rs) + "x" + std::to_string(rs) +
                    (residual ? " residual" : ""),
                {s, g, relu, true, 0});
    };
    for (int64_t n : {1, 32, 256}) {
        expand(n, 56, 64, 64, 3, false);
        expand(n, 56, 64, 256, 1, true);
        expand(n, 28, 128, 128, 3, false);
        expand(n, 28, 128, 512, 1, true);
        expand(n, 14, 256, 256, 3, false);
        expand(n, 14, 256, 1024, 1, true);
        expand(n, 7, 512, 512, 3, false);
        expand(n, 7, 512, 2048, 1, true);
    }
}

} // namespace

void gemmCases(std::vector<Case>& cases)
{
    checks(cases);
    norms(cases);
    timings(cases);
    convolutions(cases);
    choices(cases);
}

} // namespace bench
