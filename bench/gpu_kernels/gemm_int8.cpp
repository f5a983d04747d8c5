// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions of i8 by wgmma. Results are compared bit by bit, those of GELU to within one step.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "gemm_shapes.h"
#include "harness.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace bench {

namespace int8 {

namespace gemm = cuda::gemm_f16;

struct Problem
{
    gemm::Spec spec;
    gemm::Shape shape;
    bool relu = false, gelu = false, timed = false;
};

std::vector<int8_t> randomBytes(size_t count, uint64_t seed)
{
    std::vector<int8_t> v(count);
    uint64_t s = seed * 0x9e3779b97f4a7c15ull + 1;
    for (int8_t& e : v) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        e = int8_t(s >> 56);
    }
    return v;
}

// What the end reads, on the CPU and, at `args`, on the GPU.
struct End
{
    std::vector<float> scale, bias;
    std::vector<int8_t> residual, table;
    float residualScale = 0.37F;
    cuda::IntegerEndArgs args;
};

int32_t sumOf(Problem const& p, std::vector<int8_t> const& a, std::vector<int8_t> const& b, int64_t batch, int64_t m,
              int64_t n)
{
    gemm::Shape const& g = p.shape;
    gemm::Image const& i = g.image;
    int32_t sum = 0;
    auto add = [&](int8_t const* x, int8_t const* w, int64_t count) {
        for (int64_t k = 0; k < count; ++k)
            sum += int32_t(x[k]) * w[k];
    };
    if (!p.spec.image) {
        add(&a[size_t(batch * g.batchA + m * g.k)], &b[size_t(batch * g.batchB + n * g.k)], g.k);
        return sum;
    }
    int64_t const column = m % i.outW, row = m / i.outW % i.outH, image = m / i.outW / i.outH;
    for (int64_t r = 0; r < i.r; ++r)
        for (int64_t s = 0; s < i.s; ++s) {
            int64_t const h = row * i.strideH - i.padH + r * i.dilationH,
                          w = column * i.strideW - i.padW + s * i.dilationW;
            if (h >= 0 && h < i.h && w >= 0 && w < i.w)
                add(&a[size_t(((image * i.h + h) * i.w + w) * i.c)], &b[size_t(((n * i.r + r) * i.s + s) * i.c)], i.c);
        }
    return sum;
}

// Of a sum, what is stored as the type of y: i8, FP16's bits or FP32.
float endOf(Problem const& p, End const& e, int32_t sum, int64_t n, size_t at)
{
    cuda::IntegerEnd const& end = *p.spec.integers;
    float t = float(sum) * e.scale[size_t(n)];
    if (end.bias)
        t += e.bias[size_t(n)];
    if (end.residual) {
        float const r = float(e.residual[at]) * e.residualScale;
        t += r;
    }
    if (p.relu)
        t = t > 0 ? t : 0;
    if (p.gelu)
        t = float(0.5 * double(t) * std::erfc(-double(t) / std::sqrt(2.0)));
    if (end.store == DataType::kHalf)
        return halfToFloat(floatToHalf(t));
    if (end.store == DataType::kFloat)
        return t;
    t = std::clamp(std::nearbyint(t), -128.F, 127.F);
    return end.table ? e.table[size_t(t + 128)] : t;
}

float stored(std::vector<std::byte> const& y, DataType type, size_t at)
{
    std::byte const* from = y.data() + at * size_t(sizeOf(type));
    if (type == DataType::kInt8)
        return float(std::to_integer<int8_t>(*from));
    if (type == DataType::kHalf) {
        uint16_t bits;
        std::memcpy(&bits, from, sizeof(bits));
        return halfToFloat(bits);
    }
    float v;
    std::memcpy(&v, from, sizeof(v));
    return v;
}

Result<Row> run(Gpu& gpu, Problem const& p, Kernel const& kernel)
{
    gemm::Shape const& g = p.shape;
    cuda::IntegerEnd const& end = *p.spec.integers;
    gemm::Image const& i = g.image;
    Row row;
    row.label = kernel.label;
    size_t const sizeA = p.spec.image ? size_t(i.n * i.h * i.w * i.c) : size_t(g.m * g.k * (g.batchA ? g.batch : 1)),
                 sizeB = size_t(g.n * g.k * (g.batchB ? g.batch : 1)), sizeY = size_t(g.m * g.n * g.batch),
                 bytesY = sizeY * size_t(end.storeBytes());
    auto const a = randomBytes(sizeA, 1), b = randomBytes(sizeB, 2);
    End e;
    // Sums are about 74 * 74 * sqrt(k); y about 40.
    float const scale = float(40 / (5461 * std::sqrt(double(g.k))));
    e.scale = randomFloats(size_t(g.n), 3, scale / 2);
    for (float& s : e.scale)
        s += scale;
    e.bias = randomFloats(size_t(g.n), 4, 20);
    e.residual = randomBytes(end.residual ? sizeY : 16, 5);
    e.table = randomBytes(256, 6);
    double const bytes = double(sizeA + sizeB + bytesY + (end.residual ? sizeY : 0));
    int const copies = p.timed ? int(std::clamp(200e6 / bytes, 2.0, 48.0)) : 1;
    TW_ASSIGN(auto const atA, gpu.upload(a.data(), sizeA, copies));
    TW_ASSIGN(auto const atB, gpu.upload(b.data(), sizeB, copies));
    TW_ASSIGN(auto const atResidual, gpu.upload(e.residual.data(), e.residual.size(), end.residual ? copies : 1));
    TW_ASSIGN(auto const atScale, gpu.upload(e.scale.data(), e.scale.size() * 4, 1));
    TW_ASSIGN(auto const atBias, gpu.upload(e.bias.data(), e.bias.size() * 4, 1));
    TW_ASSIGN(auto const atResidualScale, gpu.upload(&e.residualScale, 4, 1));
    TW_ASSIGN(auto const atTable, gpu.upload(e.table.data(), e.table.size(), 1));
    TW_ASSIGN(auto const atY, gpu.poisoned(size_t(strideOf(bytesY)) * size_t(copies)));
    e.args.scale = reinterpret_cast<float const*>(atScale);
    e.args.scaleStep = 1;
    e.args.bias = reinterpret_cast<float const*>(atBias);
    e.args.residualScale = reinterpret_cast<float const*>(atResidualScale);
    e.args.table = reinterpret_cast<int8_t const*>(atTable);
    gemm::Launch const l = gemm::launch(p.spec, g, gpu.multiprocessors());
    TW_ASSIGN(auto function, gpu.load(kernel, l.geometry.sharedBytes));
    auto enqueue = [&](int number) -> Result<void> {
        uint64_t const at = uint64_t(number % copies);
        uint64_t const onA = atA + at * uint64_t(strideOf(sizeA)), onB = atB + at * uint64_t(strideOf(sizeB)),
                       onY = atY + at * uint64_t(strideOf(bytesY)), onR = atResidual + at * uint64_t(strideOf(sizeY));
        cuda::TensorMap maps[4];
        TW_TRY(gpu.encode(maps[0], l.p, p.spec.swap ? onB : onA));
        TW_TRY(gpu.encode(maps[1], l.q, p.spec.swap ? onA : onB));
        gemm::Args args = l.args;
        args.end = e.args;
        args.end.residual = reinterpret_cast<void const*>(onR);
        args.y = reinterpret_cast<void*>(onY);
        std::vector<void*> parameters = {&maps[0], &maps[1]};
        if (p.spec.copies) {
            TW_TRY(gpu.encode(maps[2], l.y, onY));
            parameters.push_back(&maps[2]);
        }
        if (p.spec.copies && p.spec.bringsResidual()) {
            TW_TRY(gpu.encode(maps[3], l.y, onR));
            parameters.push_back(&maps[3]);
        }
        parameters.push_back(&args);
        return gpu.launch(function, l.geometry, parameters.data(), true);
    };
    TW_TRY(enqueue(0));
    std::vector<std::byte> y(bytesY);
    TW_TRY(gpu.download(y.data(), atY, bytesY));
    // All of a small result, else both ends and places between.
    size_t const limit = size_t(std::clamp(8e7 / double(g.k), 5000.0, 100000.0));
    uint64_t s = 7;
    row.checked = true;
    for (size_t n = 0; n < std::min(limit, sizeY); ++n) {
        size_t at = n;
        if (sizeY > limit) {
            s = s * 6364136223846793005ull + 1442695040888963407ull;
            at = n < 512 ? n : n < 1024 ? sizeY - 1 - (n - 512) : size_t(s >> 16) % sizeY;
        }
        int64_t const column = int64_t(at) % g.n, m = int64_t(at) / g.n % g.m, batch = int64_t(at) / g.n / g.m;
        float const expected = endOf(p, e, sumOf(p, a, b, batch, m, column), column, at), is = stored(y, end.store, at);
        if (is == expected || (p.gelu && std::fabs(is - expected) <= 1))
            continue;
        if (!row.failed)
            std::printf("batch %lld, row %lld, column %lld is %g, not %g\n", static_cast<long long>(batch),
                        static_cast<long long>(m), static_cast<long long>(column), double(is), double(expected));
        row.failed = true;
        row.error = std::max(row.error, std::fabs(double(is) - double(expected)));
    }
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
        std::printf("not a case: i8 %s %s: %s\n", what.c_str(), p.spec.name().c_str(), why);
        return;
    }
    Kernel k{"i8 " + what + " " + p.spec.name(), gemm::source(p.spec), gemm::kKernel};
    cases.push_back({k.label, {k}, [p, k](Gpu& gpu) { return run(gpu, p, k); }});
}

gemm::Spec ending(bool residual, bool table = false, DataType store = DataType::kInt8)
{
    gemm::Spec s;
    cuda::IntegerEnd e;
    e.store = store;
    e.bias = true;
    e.residual = residual;
    e.table = table;
    s.integers = e;
    s.bias = false;
    s.copies = true;
    return s;
}
gemm::Spec tile(int p, int q, int stages, int groups, int split = 1)
{
    gemm::Spec s = ending(false);
    s.tileP = p;
    s.tileQ = q;
    s.stages = stages;
    s.groups = groups;
    s.split = split;
    s.copies = false;
    return s;
}

void withRelu(Problem& p)
{
    p.relu = true;
    p.spec.integers->activation = cuda::kRelu;
}

// Each feature alone, on shapes with edges everywhere.
void checks(std::vector<Case>& cases)
{
    gemm::Shape const odd = shape(333, 336, 208), large = shape(3333, 1104, 208);
    auto with = [&](char const* what, gemm::Spec const& s, gemm::Shape const& g, bool relu = true) {
        Problem p{s, g};
        if (relu)
            withRelu(p);
        add(cases, std::string("check ") + what, p);
    };
    with("plain", tile(128, 128, 4, 2), odd, false);
    with("one group", tile(64, 64, 4, 1), odd);
    with("wide", tile(128, 256, 4, 2), odd);
    with("192 columns", tile(128, 192, 4, 2), odd);
    for (DataType store : {DataType::kInt8, DataType::kHalf, DataType::kFloat})
        for (bool residual : {false, true})
            for (bool copies : {false, true}) {
                gemm::Spec s = tile(128, 128, 3, 2);
                *s.integers = *ending(residual, store == DataType::kInt8 && residual, store).integers;
                s.copies = copies;
                with(copies ? "end, copies" : "end", s, odd);
            }
    for (int q : {128, 256}) {
        gemm::Spec s = tile(128, q, 3, 2);
        s.copies = true;
        for (bool residual : {false, true}) {
            s.integers->residual = residual;
            with("copies, several tiles", s, large);
            with("copies, short", s, shape(3333, 1104, 64));
        }
        if (q == 256)
            continue;
        s.pingPong = true;
        with("copies, residual, ping-pong", s, large);
        s.ahead = true; // of several tiles for each block
        with("copies, residual ahead", s, shape(13333, 1104, 208));
        with("copies, residual ahead, short", s, shape(13333, 1104, 64));
        s.stepBytes = 64;
        with("copies, residual ahead, short steps", s, shape(13333, 1104, 208));
        s.stepBytes = 128;
        s.ahead = false;
        gemm::Shape batches = shape(100, 96, 80);
        batches.batch = 5;
        batches.batchA = batches.m * batches.k;
        with("copies, residual, ping-pong, batches", s, batches);
        s.multicast = 2;
        with("copies, residual, ping-pong, multicast", s, large);
    }
    gemm::Spec s = tile(128, 256, 3, 2);
    s.multicast = 2;
    with("multicast", s, large);
    s = tile(64, 64, 6, 1, 4);
    s.integers->residual = true;
    with("split 4", s, odd);
    with("split 2", tile(128, 128, 4, 2, 2), odd);
    s = tile(64, 16, 6, 1, 2);
    s.swap = true;
    s.integers->residual = true;
    with("swapped", s, shape(7, 328, 528));
    s = tile(128, 112, 3, 2);
    s.swap = true;
    s.aligned = false;
    with("swapped, unaligned", s, shape(197, 325, 208));
    s = tile(128, 128, 4, 2);
    s.constantB = false;
    gemm::Shape g = shape(100, 96, 80);
    g.batch = 5;
    g.batchA = g.m * g.k;
    g.batchB = g.n * g.k;
    with("batches", s, g);
    s = tile(64, 64, 4, 1);
    s.aligned = false;
    s.integers->residual = true;
    with("unaligned", s, shape(333, 323, 208));
    s = tile(128, 64, 4, 2);
    s.image = true;
    with("3x3", s, image(3, 19, 80, 96, 3, 1));
    with("3x3 stride 2", s, image(3, 19, 64, 96, 3, 2));
    with("1x1 stride 2", s, image(3, 19, 64, 96, 1, 2));
    s.stepBytes = 64;
    with("3x3 short steps", s, image(3, 19, 64, 96, 3, 1));
    with("3x3 stride 2 short steps", s, image(3, 19, 80, 96, 3, 2));
    s.image = false;
    with("short steps", s, odd);
    s.multicast = 2;
    with("short steps, multicast", s, large);
    s = tile(64, 64, 6, 1, 4);
    s.image = true;
    with("3x3 split 4", s, image(1, 7, 64, 96, 3, 1));
    s = tile(64, 16, 6, 1);
    s.swap = true;
    s.stepBytes = 64;
    with("short steps, swapped", s, shape(7, 336, 528));
}

// The first choices for shapes of whole networks.
void choices(std::vector<Case>& cases)
{
    auto choose = [&](std::string const& what, gemm::Spec const& base, gemm::Shape const& g, size_t most, bool relu) {
        for (gemm::Spec const& s : gemm::candidates(base, g, 132, most)) {
            Problem p{s, g};
            p.timed = true;
            if (relu)
                withRelu(p);
            if (what.ends_with("gelu")) {
                p.gelu = true;
                p.spec.integers->activation = cuda::kGeluErfToBytes;
            }
            add(cases, what, p);
        }
    };
    auto product = [&](int64_t m, int64_t n, int64_t k, size_t most, bool residual = false, bool table = false) {
        choose("m" + std::to_string(m) + " n" + std::to_string(n) + " k" + std::to_string(k) +
                   (residual ? " residual"
                    : table  ? " table"
                             : ""),
               ending(residual, table), shape(m, n, k), most, false);
    };
    product(4096, 4096, 4096, 6);
    product(8192, 8192, 8192, 6);
    for (int64_t m : {12288, 384}) {
        product(m, 3072, 1024, 6);
        product(m, 1024, 1024, 6, true);
        product(m, 4096, 1024, 6, false, true);
        product(m, 1024, 4096, 6, true);
    }
    product(12608, 3072, 768, 4, false, true);
    choose("m12288 n4096 k1024 gelu", ending(false), shape(12288, 4096, 1024), 4, false);
    choose("m12608 n3072 k768 gelu", ending(false), shape(12608, 3072, 768), 4, false);
    product(1, 1000, 2048, 4);
    struct Layer
    {
        int64_t hw, c, k, rs;
        int stride;
        bool residual;
    };
    static constexpr Layer kLayers[] = {
        {56, 64, 64, 1, 1, false},   {56, 64, 64, 3, 1, false},   {56, 64, 256, 1, 1, true},
        {56, 256, 64, 1, 1, false},  {56, 256, 128, 1, 1, false}, {56, 128, 128, 3, 2, false},
        {28, 128, 512, 1, 1, true},  {28, 512, 128, 1, 1, false}, {28, 128, 128, 3, 1, false},
        {28, 256, 256, 3, 2, false}, {14, 256, 1024, 1, 1, true}, {14, 1024, 256, 1, 1, false},
        {14, 256, 256, 3, 1, false}, {14, 512, 512, 3, 2, false}, {7, 512, 2048, 1, 1, true},
        {7, 2048, 512, 1, 1, false}, {7, 512, 512, 3, 1, false}};
    for (int64_t n : {256, 32, 1})
        for (Layer const& l : kLayers) {
            gemm::Shape g = image(n, l.hw, l.c, l.k, l.rs, l.stride);
            gemm::Spec base = ending(l.residual);
            base.image = l.rs > 1 || l.stride > 1;
            if (!base.image)
                g = shape(g.m, g.n, g.k);
            choose("b" + std::to_string(n) + " " + std::to_string(l.hw) + "x" + std::to_string(l.hw) + " " +
                       std::to_string(l.c) + "->" + std::to_string(l.k) + " " + std::to_string(l.rs) + "x" +
                       std::to_string(l.rs) + (l.stride > 1 ? "/2" : "") + (l.residual ? " residual" : ""),
                   base, g, 4, true);
        }
}

} // namespace int8

void gemmInt8Cases(std::vector<Case>& cases)
{
    int8::checks(cases);
    int8::choices(cases);
}

} // namespace bench
