// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_gemm_wgmma_run.h"

#include "families/elementwise/cuda_epilogue.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::gemm_f16 {

using matrix_multiply::Geometry;

namespace {

int64_t padBytes(kernel::PadRows const& p)
{
    return roundUp(p.rows * p.padded * 2, 256);
}

// Which operands a run copies; not yet where to.
kernel::PadArgs padding(Resolved const& s, std::span<TensorRef const> in)
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

CudaSource sourceOf(Resolved const& s)
{
    CudaSource out = s.isMma ? wholeSource(matrix::kKernel, s.mma) : wholeSource(kernel::kKernel, s.spec);
    if (s.spec.tf32x3) {
        out.text += kernel::splitSource();
        out.names.push_back(kernel::kSplitKernel);
    }
    if (s.normalizes)
        out.names.push_back(kernel::kFillKernel);
    if (s.isMma && s.mma.sumsInMemory())
        out.names.push_back(matrix::kFinishKernel);
    if (s.pads()) {
        out.text += kernel::padSource();
        out.names.push_back(kernel::kPadKernel);
    }
    return out;
}

// What both kernels have in common: operands that are packed, or copied by each run, and collections.
class ProductKernels : public CudaKernels
{
public:
    explicit ProductKernels(Resolved const& resolved) : CudaKernels(sourceOf(resolved)), s_(resolved) {}
    PackedParts pack(Problem const& p) const override
    {
        std::vector<std::string> parts;
        auto addFloats = [&](int input) {
            TensorSpec const& t = p.inputs[size_t(input)];
            parts.push_back(packFloats(t, t.dims.volume()));
        };
        using Gated = PackedMatrices::Gated;
        if (s_.biasAt >= 0) {
            addFloats(Epilogue::kBias);
            if (s_.spec.gated)
                packGatedBias(parts.back());
        }
        if (s_.normalizes) {
            addFloats(Epilogue::kGamma);
            addFloats(Epilogue::kBeta);
        }
        if (s_.sumsAt >= 0) {
            parts.push_back(packColumnSums(p.inputs[1], s_.rowsB, s_.columnsB, s_.spec.bAlongK));
            if (s_.spec.gated)
                packGatedBias(parts.back());
        }
        if (s_.packedBAt >= 0)
            parts.push_back(packMatrices(*p.inputs[1].constant,
                                         {s_.rowsB, s_.columnsB, s_.paddedB, s_.spec.operandBytes(), s_.transposesB,
                                          !s_.spec.gated    ? Gated::kNot
                                          : s_.spec.bAlongK ? Gated::kRows
                                                            : Gated::kColumns,
                                          s_.spec.tf32x3}));
        return parts;
    }
    bool readsOnDevice(size_t i) const override
    {
        if (i == 1)
            return s_.packedBAt < 0;
        if (i == size_t(Epilogue::kBias))
            return s_.biasAt < 0;
        return !s_.normalizes || (i != size_t(Epilogue::kGamma) && i != size_t(Epilogue::kBeta));
    }

protected:
    struct Operands
    {
        void const *a = nullptr, *b = nullptr;
    };
    Product productOf(std::span<TensorRef const> in) const
    {
        return gemm_f16::productOf(s_, matrix_multiply::geometryOf(*s_.node, in[0].dims, in[1].dims));
    }
    // Of a run; an error where the kernel cannot do it.
    Result<Product> productOf(RunArgs const& args) const
    {
        Product p = productOf(args.inputs);
        if (char const* const why = unsupported(s_, p.shape))
            return wrongShapes(*s_.node, args, why);
        return p;
    }
    float const* biasOf(CudaLaunch const& launch, RunArgs const& args) const
    {
        if (!s_.spec.bias)
            return nullptr;
        return static_cast<float const*>(s_.biasAt >= 0 ? launch.packed(s_.biasAt)
                                                        : args.inputs[size_t(Epilogue::kBias)].data);
    }
    int64_t paddedBytes(std::span<TensorRef const> in) const
    {
        kernel::PadArgs const p = padding(s_, in);
        return padBytes(p.a) + padBytes(p.b);
    }
    // Where they lie, copied into the workspace at `at` where they are padded.
    Result<Operands> operandsOf(CudaLaunch const& launch, RunArgs const& args, int64_t at) const
    {
        Operands o{args.inputs[0].data, s_.packedBAt >= 0 ? launch.packed(s_.packedBAt) : args.inputs[1].data};
        if (!s_.pads())
            return o;
        kernel::PadArgs pad = padding(s_, args.inputs);
        pad.a.to = static_cast<std::byte*>(args.workspace) + at;
        pad.b.to = static_cast<std::byte*>(pad.a.to) + padBytes(pad.a);
        int const last = int(source().names.size()) - 1;
        TW_TRY(launch(last, kernel::padBlocks(pad), 256, pad));
        o.a = s_.paddedA ? pad.a.to : o.a;
        o.b = s_.padsB ? pad.b.to : o.b;
        return o;
    }
    // launchOne(a, b) for each part that a launch does, with y and residual in `out`.
    template <class LaunchOne>
    Result<void> eachLaunch(Product const& p, RunArgs const& args, Operands const& o, cuda::Output& out,
                            LaunchOne const& launchOne) const
    {
        kernel::Spec const& spec = s_.spec;
        int64_t y = 0;
        Counter outer(p.outer);
        do {
            out.y = static_cast<std::byte*>(args.outputs[0].data) + y * spec.storeBytes();
            if (hasInput(*s_.node, Epilogue::kResidual))
                out.residual = at(args.inputs[size_t(Epilogue::kResidual)].data, y, spec.residualBytes());
            TW_TRY(launchOne(at(o.a, outer.offset(p.aOuter), spec.operandBytes()),
                             at(o.b, outer.offset(p.bOuter), spec.operandBytes())));
            y += p.shape.batchY * p.shape.batch;
        } while (outer.next());
        return {};
    }
    // What lies so many elements behind.
    static std::byte const* at(void const* base, int64_t elements, int64_t size)
    {
        return static_cast<std::byte const*>(base) + elements * size;
    }

    Resolved const s_;
};

class MmaKernels final : public ProductKernels
{
public:
    using ProductKernels::ProductKernels;
    // Sums of blocks that share k, then copies of operands.
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        if (!s_.pads() && !s_.mma.sumsInMemory())
            return 0;
        return roundUp(matrix::launch(s_.mma, productOf(in).shape).sumsBytes, 256) + paddedBytes(in);
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        TW_ASSIGN(Product const p, productOf(args));
        matrix::Launch l = matrix::launch(s_.mma, p.shape);
        TW_ASSIGN(Operands const operands, operandsOf(launch, args, roundUp(l.sumsBytes, 256)));
        l.args.bias = biasOf(launch, args);
        l.args.sums = static_cast<float*>(args.workspace);
        return eachLaunch(p, args, operands, l.args, [&](void const* a, void const* b) -> Result<void> {
            l.args.a = a;
            l.args.b = b;
            TW_TRY(launch.withGeometry(0, l.geometry, {&l.args}));
            if (s_.mma.sumsInMemory())
                return launch.withGeometry(1, l.finish, {&l.args});
            return {};
        });
    }
};

class WgmmaKernels final : public ProductKernels
{
public:
    using ProductKernels::ProductKernels;
    // Parts of a, what blocks tell each other, or copies of operands.
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        kernel::Shape const shape = productOf(in).shape;
        if (s_.spec.tf32x3)
            return shape.m * kernel::splitRow(shape.k) * int64_t(sizeof(float));
        if (s_.normalizes)
            return kernel::normParts(s_.spec, shape) * int64_t(sizeof(uint64_t));
        return s_.pads() ? paddedBytes(in) : 0;
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        TW_ASSIGN(Product const p, productOf(args));
        TW_ASSIGN(Operands operands, operandsOf(launch, args, 0));
        kernel::Shape shape = p.shape;
        if (s_.spec.tf32x3) {
            TW_TRY(splitA(launch, args, p.shape));
            operands.a = args.workspace;
            shape.lda = 0; // its parts are dense
        }
        kernel::Norm norm;
        if (s_.normalizes) {
            TW_ASSIGN(norm, normOf(launch, args, p.shape));
        }
        kernel::Launch l = kernel::launch(s_.spec, shape, launch.multiprocessors());
        l.args.bias = biasOf(launch, args);
        if (s_.spec.integers)
            l.args.end = integerEndArgs(args);
        return eachLaunch(p, args, operands, l.args, [&](void const* a, void const* b) {
            l.args.end.residual = l.args.residual;
            return s_.spec.firstNorm ? launchFirst(launch, l, shape, a, b) : launchMaps(launch, l, norm, a, b);
        });
    }

private:
    Result<void> launchFirst(CudaLaunch const& launch, kernel::Launch const& l, kernel::Shape const& shape,
                             void const* a, void const* b) const
    {
        kernel::FirstNorm norm;
        norm.a = a;
        norm.sums = s_.sumsAt >= 0 ? static_cast<float const*>(launch.packed(s_.sumsAt)) : nullptr;
        norm.lda = shape.lda ? shape.lda : shape.k;
        norm.rows = int32_t(shape.m);
        norm.k = int32_t(shape.k);
        norm.columns = int32_t(shape.n);
        norm.epsilon = float(s_.epsilon);
        TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, s_.spec.swap ? b : a));
        TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, s_.spec.swap ? a : b));
        return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &norm, &l.args});
    }
    // a as two TF32 numbers each, in the workspace.
    Result<void> splitA(CudaLaunch const& launch, RunArgs const& args, kernel::Shape const& shape) const
    {
        kernel::SplitArgs split;
        split.a = args.inputs[0].data;
        split.to = args.workspace;
        split.lda = shape.lda;
        split.rows = int32_t(shape.m);
        split.k = int32_t(shape.k);
        split.padded = int32_t(kernel::splitRow(shape.k) / 2);
        return launch(1, kernel::splitBlocks(split), 256, split);
    }
    Result<kernel::Norm> normOf(CudaLaunch const& launch, RunArgs const& args, kernel::Shape const& shape) const
    {
        kernel::Norm norm;
        kernel::FillArgs fill;
        fill.parts = norm.parts = static_cast<uint64_t*>(args.workspace);
        fill.count = kernel::normParts(s_.spec, shape);
        TW_TRY(launch(1, blocksFor(fill.count, 256), 256, fill));
        norm.rows = int32_t(kernel::normRows(s_.spec, shape));
        norm.gamma = static_cast<float const*>(launch.packed(s_.gammaAt));
        norm.beta = static_cast<float const*>(launch.packed(s_.gammaAt + 1));
        norm.epsilon = float(s_.epsilon);
        return norm;
    }
    // `norm`: where rows are normalized.
    Result<void> launchMaps(CudaLaunch const& launch, kernel::Launch const& l, kernel::Norm const& norm, void const* a,
                            void const* b) const
    {
        TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, s_.spec.swap ? b : a));
        TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, s_.spec.swap ? a : b));
        if (!s_.spec.copies)
            return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &l.args});
        TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, l.args.y));
        cuda::TensorMap mapResidual;
        if (s_.spec.bringsResidual()) {
            TW_ASSIGN(mapResidual, launch.encode(l.y, l.args.residual));
        }
        if (s_.normalizes) // has a residual always
            return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &mapResidual, &norm, &l.args});
        if (s_.spec.bringsResidual())
            return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &mapResidual, &l.args});
        return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &l.args});
    }
};

} // namespace

Product productOf(Resolved const& s, Geometry const& g)
{
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
    Product p{batchesOf(r.batch, aBatch, bBatch), {}};
    kernel::Shape& shape = p.shape;
    shape.m = r.m;
    shape.n = g.n;
    shape.k = g.k;
    shape.lda = lda;
    shape.ldb = s.paddedB ? s.paddedB : r.ldb;
    shape.batch = p.batch;
    shape.batchA = p.batchA;
    shape.batchB = p.batchB;
    shape.batchY = r.m * g.n / (s.spec.gated ? 2 : 1);
    return p;
}

char const* unsupported(Resolved const& s, kernel::Shape const& shape)
{
    return s.isMma ? matrix::unsupported(s.mma, shape) : kernel::unsupported(s.spec, shape);
}

std::unique_ptr<CudaKernels> kernelsOf(Resolved const& resolved)
{
    if (resolved.isMma)
        return std::make_unique<MmaKernels>(resolved);
    return std::make_unique<WgmmaKernels>(resolved);
}

} // namespace tw::ops::gemm_f16
