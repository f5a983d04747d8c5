// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_gemm_wgmma_run.h"

namespace tw::ops::gemm_f16 {

using matrix_multiply::Geometry;

namespace {

int64_t padBytes(kernel::PadRows const& p)
{
    return roundUp(p.rows * p.padded * 2, 256);
}

// Which operands a run copies; not yet where to.
kernel::PadArgs padding(Settled const& s, std::span<TensorRef const> in)
{
    kernel::PadArgs p;
    auto set = [&](kernel::PadRows& rows, TensorRef const& of, int64_t columns, int64_t padded) {
        rows.from = of.data;
        rows.rows = of.dims.volume() / columns;
        rows.columns = int32_t(columns);
        rows.padded = int32_t(padded);
    };
    if (s.paddedA)
        set(p.a, in[0], s.columnsA, s.paddedA);
    if (s.padsB)
        set(p.b, in[1], s.columnsB, s.paddedB);
    return p;
}

// `norm`: where rows are normalized.
Result<void> launchMaps(Settled const& s, CudaLaunch const& launch, kernel::Launch const& l, kernel::Norm const& norm,
                        void const* a, void const* b)
{
    TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, s.spec.swap ? b : a));
    TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, s.spec.swap ? a : b));
    if (!s.spec.copies)
        return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &l.args});
    TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, l.args.y));
    cuda::TensorMap mapResidual;
    if (s.spec.residual) {
        TW_ASSIGN(mapResidual, launch.encode(l.y, l.args.residual));
    }
    if (s.normalizes) // has a residual always
        return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &mapResidual, &norm, &l.args});
    if (s.spec.residual)
        return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &mapResidual, &l.args});
    return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &l.args});
}

} // namespace

Product productOf(Settled const& s, Geometry const& g)
{
    Product p;
    kernel::Shape& shape = p.shape;
    ProductRows const r = rowsOf(g, s.spec.aAlongK, s.spec.bAlongK);
    Extents aBatch = r.aBatch, bBatch = r.bBatch;
    int64_t lda = r.lda;
    if (s.paddedA) {
        lda = lda ? lda / s.columnsA * s.paddedA : s.paddedA;
        for (int d = 0; d < aBatch.rank; ++d)
            aBatch[d] = aBatch[d] / s.columnsA * s.paddedA;
    }
    for (int d = 0; s.paddedB && d < bBatch.rank; ++d)
        bBatch[d] = bBatch[d] / (s.rowsB * s.columnsB) * (s.transposesB ? s.columnsB : s.rowsB) * s.paddedB;
    ProductBatches const b = batchesOf(r.batch, aBatch, bBatch);
    shape.m = r.m;
    shape.n = g.n;
    shape.k = g.k;
    shape.lda = lda;
    shape.ldb = s.paddedB ? s.paddedB : r.ldb;
    shape.batch = b.batch;
    shape.batchA = b.batchA;
    shape.batchB = b.batchB;
    shape.batchY = r.m * g.n;
    p.outer = b.outer;
    p.aOuter = b.aOuter;
    p.bOuter = b.bOuter;
    return p;
}

char const* unsupported(Settled const& s, kernel::Shape const& shape)
{
    return s.isMma ? matrix::unsupported(s.mma, shape) : kernel::unsupported(s.spec, shape);
}

int64_t workspaceOf(Settled const& s, std::span<TensorRef const> in)
{
    Product const product = productOf(s, matrix_multiply::geometryOf(*s.node, in[0].dims, in[1].dims));
    if (s.spec.tf32x3)
        return product.shape.m * kernel::splitRow(product.shape.k) * int64_t(sizeof(float));
    if (s.normalizes)
        return kernel::normParts(s.spec, product.shape) * int64_t(sizeof(uint64_t));
    int64_t const sums = s.isMma ? matrix::launch(s.mma, product.shape).sumsBytes : 0;
    kernel::PadArgs const p = padding(s, in);
    return roundUp(sums, 256) + padBytes(p.a) + padBytes(p.b);
}

Result<void> run(Settled const& s, CudaLaunch const& launch, RunArgs& args)
{
    Product const p = productOf(s, matrix_multiply::geometryOf(*s.node, args.inputs[0].dims, args.inputs[1].dims));
    if (char const* const why = unsupported(s, p.shape))
        return Error{ErrorCode::kFailedExecution, "layer '" + s.node->name + "': shapes " + args.inputs[0].dims.str() +
                                                      " and " + args.inputs[1].dims.str() +
                                                      " are not among those that its kernel was made for: " + why};
    matrix::Launch mma;
    kernel::Launch l;
    if (s.isMma) {
        mma = matrix::launch(s.mma, p.shape);
    } else {
        kernel::Shape shape = p.shape;
        if (s.spec.tf32x3)
            shape.lda = 0; // its parts are dense
        l = kernel::launch(s.spec, shape, launch.multiprocessors());
    }
    kernel::Norm norm;
    if (s.normalizes) {
        kernel::FillArgs fill;
        fill.parts = norm.parts = static_cast<uint64_t*>(args.workspace);
        fill.count = kernel::normParts(s.spec, p.shape);
        TW_TRY(launch(1, blocksFor(fill.count, 256), 256, fill));
        norm.rows = int32_t(kernel::normRows(s.spec, p.shape));
        norm.gamma = static_cast<float const*>(launch.packed(s.gammaAt));
        norm.beta = static_cast<float const*>(launch.packed(s.gammaAt + 1));
        norm.epsilon = float(s.epsilon);
    }
    cuda::Output& out = s.isMma ? static_cast<cuda::Output&>(mma.args) : l.args;
    if (s.spec.bias)
        out.bias = static_cast<float const*>(s.biasAt >= 0 ? launch.packed(s.biasAt)
                                                           : args.inputs[size_t(Epilogue::kBias)].data);
    auto at = [&](void const* base, int64_t elements) {
        return static_cast<std::byte const*>(base) + elements * s.spec.elementBytes();
    };
    if (s.spec.tf32x3) {
        kernel::SplitArgs split;
        split.a = args.inputs[0].data;
        split.to = args.workspace;
        split.lda = p.shape.lda;
        split.rows = int32_t(p.shape.m);
        split.k = int32_t(p.shape.k);
        split.padded = int32_t(kernel::splitRow(p.shape.k) / 2);
        TW_TRY(launch(1, kernel::splitBlocks(split), 256, split));
    }
    void const* a = s.spec.tf32x3 ? args.workspace : args.inputs[0].data;
    void const* b = s.packedBAt >= 0 ? launch.packed(s.packedBAt) : args.inputs[1].data;
    if (s.pads()) {
        kernel::PadArgs pad = padding(s, args.inputs);
        pad.a.to = static_cast<std::byte*>(args.workspace) + roundUp(mma.sumsBytes, 256);
        pad.b.to = static_cast<std::byte*>(pad.a.to) + padBytes(pad.a);
        TW_TRY(launch(s.padKernel(), kernel::padBlocks(pad), 256, pad));
        a = s.paddedA ? pad.a.to : a;
        b = s.padsB ? pad.b.to : b;
    }
    int64_t y = 0;
    Counter outer(p.outer);
    do {
        void const* const aAt = at(a, outer.offset(p.aOuter));
        void const* const bAt = at(b, outer.offset(p.bOuter));
        out.y = static_cast<std::byte*>(args.outputs[0].data) + y * s.spec.elementBytes();
        if (s.spec.residual)
            out.residual = at(args.inputs[size_t(Epilogue::kResidual)].data, y);
        if (s.isMma) {
            mma.args.a = aAt;
            mma.args.b = bAt;
            mma.args.sums = static_cast<float*>(args.workspace);
            TW_TRY(launch.withGeometry(0, mma.geometry, {&mma.args}));
            if (s.mma.sumsInMemory())
                TW_TRY(launch.withGeometry(1, mma.finish, {&mma.args}));
        } else {
            TW_TRY(launchMaps(s, launch, l, norm, aAt, bAt));
        }
        y += p.shape.batchY * p.shape.batch;
    } while (outer.next());
    return {};
}

} // namespace tw::ops::gemm_f16
