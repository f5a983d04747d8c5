// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_cublaslt.h"

#include <algorithm>
#include <cmath>

#include "device/cuda/device.h"
#include "families/elementwise/cuda_pointwise.h"
#include "tactic/cuda_library.h"

namespace tw::ops {

namespace {

using cuda::CublasLt;
using cuda::LtLayout;
using cuda::LtProduct;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr int kMostChoices = 3;
constexpr uint32_t kAlignment = 16;     // bytes, of all addresses
constexpr int64_t kWorkspaceStep = 256; // bytes that a workspace is aligned to
// What an algorithm may ask for: where shapes vary every one of them gets the same, so less.
constexpr int64_t kMostWorkspace = 32 << 20, kMostWorkspaceVarying = 4 << 20;

// What does not depend on the sizes of a run.
struct Resolved
{
    ir::Node const* node = nullptr;
    bool isHalf = false, tf32 = false;
    bool aAlongK = true, bAlongK = false; // stored with k as the inner dimension
    bool bias = false, residual = false;
    int32_t epilogue = cuda::kLtEpilogueNone;
    int64_t mostWorkspace = kMostWorkspace;
};

// y = a b for each of `batch`, all of it for each of `outer`; strides in elements, ld from one stored row to the next.
struct Product : ProductBatches
{
    int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, batchY = 0;
    bool isEmpty() const { return m == 0 || n == 0 || batch == 0 || outer.volume() == 0; }
};

// Negative: the library has no such end of a product.
int32_t epilogueOf(FusedActivation const& f)
{
    if (!f.any())
        return 0;
    if (f.kind == int32_t(activation::Kind::kRelu))
        return cuda::kLtEpilogueRelu;
    return f.kind == int32_t(FusedKind::kGeluTanh) ? cuda::kLtEpilogueGelu : -1;
}

Resolved resolve(Problem const& p, bool tf32)
{
    Resolved s;
    s.node = p.node;
    s.tf32 = tf32;
    s.isHalf = p.inputs[0].type == DataType::kHalf;
    auto const& operations = p.node->attrsAs<matrix_multiply::Attrs>();
    s.aAlongK = operations.a != MatrixOperation::kTranspose;
    s.bAlongK = operations.b != MatrixOperation::kNone;
    s.bias = isPresent(p, Epilogue::kBias);
    s.residual = isPresent(p, Epilogue::kResidual);
    int32_t const f = epilogueOf(operations.epilogue.activation);
    s.epilogue = std::max(f + (s.bias ? cuda::kLtEpilogueBias : 0), int32_t(cuda::kLtEpilogueNone));
    s.mostWorkspace = isStatic(p) ? kMostWorkspace : kMostWorkspaceVarying;
    return s;
}

Product productOf(Resolved const& s, Geometry const& g)
{
    ProductRows const r = rowsOf(g, s.aAlongK, s.bAlongK);
    Product p{batchesOf(r.batch, r.aBatch, r.bBatch)};
    p.m = r.m;
    p.n = g.n;
    p.k = g.k;
    // A single row has no step to the next.
    p.lda = std::max(r.lda, s.aAlongK ? p.k : p.m);
    p.ldb = std::max(r.ldb, s.bAlongK ? p.k : p.n);
    p.batchY = p.m * p.n;
    return p;
}

template <class T>
struct Owned
{
    T* object = nullptr;
    int (*destroy)(T*) = nullptr;
    Owned() = default;
    ~Owned()
    {
        if (object)
            destroy(object);
    }
    Owned(Owned const&) = delete;
    Owned& operator=(Owned const&) = delete;
};

Result<void> makeProduct(CublasLt const& lt, Resolved const& s, void const* bias, Owned<LtProduct>& out)
{
    out.destroy = lt.cublasLtMatmulDescDestroy;
    TW_TRY(lt.check(
        lt.cublasLtMatmulDescCreate(&out.object, s.tf32 ? cuda::kLtComputeTf32 : cuda::kLtComputeFloat, cuda::kLtFloat),
        "cublasLtMatmulDescCreate"));
    auto set = [&](int attribute, auto const& value) {
        return lt.check(lt.cublasLtMatmulDescSetAttribute(out.object, attribute, &value, sizeof(value)),
                        "cublasLtMatmulDescSetAttribute");
    };
    // By columns: y transposed is b transposed times a transposed, so b is the library's A.
    int32_t const transposed = cuda::kLtTranspose;
    if (s.bAlongK)
        TW_TRY(set(cuda::kLtProductTransposeA, transposed));
    if (!s.aAlongK)
        TW_TRY(set(cuda::kLtProductTransposeB, transposed));
    TW_TRY(set(cuda::kLtProductEpilogue, s.epilogue));
    if (s.bias)
        TW_TRY(set(cuda::kLtProductBias, bias));
    return {};
}

Result<void> makeLayout(CublasLt const& lt, Resolved const& s, int64_t rows, int64_t columns, int64_t ld, int64_t batch,
                        int64_t batchStride, Owned<LtLayout>& out)
{
    out.destroy = lt.cublasLtMatrixLayoutDestroy;
    TW_TRY(lt.check(lt.cublasLtMatrixLayoutCreate(&out.object, s.isHalf ? cuda::kLtHalf : cuda::kLtFloat,
                                                  uint64_t(rows), uint64_t(columns), ld),
                    "cublasLtMatrixLayoutCreate"));
    int32_t const count = int32_t(batch);
    if (batch == 1)
        return {};
    TW_TRY(lt.check(lt.cublasLtMatrixLayoutSetAttribute(out.object, cuda::kLtLayoutBatch, &count, sizeof(count)),
                    "cublasLtMatrixLayoutSetAttribute"));
    return lt.check(
        lt.cublasLtMatrixLayoutSetAttribute(out.object, cuda::kLtLayoutBatchStride, &batchStride, sizeof(batchStride)),
        "cublasLtMatrixLayoutSetAttribute");
}

// For one set of shapes.
struct LtPrepared final : Prepared
{
    Product product;
    Owned<LtLayout> a, b, y;
    std::vector<cuda::LtChoice> choices; // best first
};

Result<std::shared_ptr<LtPrepared>> ask(CublasLt const& lt, cuda::LtHandle* handle, Resolved const& s,
                                        Product const& product)
{
    auto out = std::make_shared<LtPrepared>();
    out->product = product;
    Product const& p = out->product;
    if (p.isEmpty())
        return out;
    TW_TRY(makeLayout(lt, s, s.aAlongK ? p.k : p.m, s.aAlongK ? p.m : p.k, p.lda, p.batch, p.batchA, out->a));
    TW_TRY(makeLayout(lt, s, s.bAlongK ? p.k : p.n, s.bAlongK ? p.n : p.k, p.ldb, p.batch, p.batchB, out->b));
    TW_TRY(makeLayout(lt, s, p.n, p.m, p.n, p.batch, p.batchY, out->y));
    Owned<LtProduct> operation;
    TW_TRY(makeProduct(lt, s, cuda::nowhere(), operation));
    Owned<cuda::LtPreference> preference;
    preference.destroy = lt.cublasLtMatmulPreferenceDestroy;
    TW_TRY(lt.check(lt.cublasLtMatmulPreferenceCreate(&preference.object), "cublasLtMatmulPreferenceCreate"));
    auto prefer = [&](int attribute, auto const& value) {
        return lt.check(lt.cublasLtMatmulPreferenceSetAttribute(preference.object, attribute, &value, sizeof(value)),
                        "cublasLtMatmulPreferenceSetAttribute");
    };
    TW_TRY(prefer(cuda::kLtPreferWorkspace, uint64_t(s.mostWorkspace)));
    TW_TRY(prefer(cuda::kLtPreferReductions, uint32_t(cuda::kLtReduceInFloat)));
    for (int matrix = 0; matrix < 4; ++matrix)
        TW_TRY(prefer(cuda::kLtPreferAlignmentA + matrix, kAlignment));
    out->choices.resize(kMostChoices);
    int count = 0;
    TW_TRY(lt.check(lt.cublasLtMatmulAlgoGetHeuristic(handle, operation.object, out->b.object, out->a.object,
                                                      out->y.object, out->y.object, preference.object, kMostChoices,
                                                      out->choices.data(), &count),
                    "cublasLtMatmulAlgoGetHeuristic"));
    out->choices.resize(size_t(std::clamp(count, 0, kMostChoices)));
    std::erase_if(out->choices, [](cuda::LtChoice const& c) { return c.status != 0; });
    if (out->choices.empty())
        return unsupported("cuBLASLt has no algorithm for these matrices");
    return out;
}

// The product with the bias where it lies now.
struct LtKept final : Kept
{
    Owned<LtProduct> product;
    void const* bias = nullptr;
};

class CublasLtKernel final : public Kernel
{
public:
    CublasLtKernel(std::shared_ptr<cuda::Device const> device, std::shared_ptr<cuda::Libraries> libraries,
                   CublasLt const& lt, cuda::LtHandle* handle, Resolved const& resolved, size_t rank)
        : device_(std::move(device)), libraries_(std::move(libraries)), lt_(lt), handle_(handle), s_(resolved),
          rank_(rank), workspace_(resolved.mostWorkspace)
    {}
    // Shapes never vary: no more than these need.
    Result<void> settleWorkspace(Product const& product)
    {
        cuda::Current const current(*device_);
        TW_ASSIGN(auto asked, ask(lt_, handle_, s_, product));
        workspace_ = asked->choices.empty() ? 0 : int64_t(choiceOf(*asked).workspaceBytes);
        return {};
    }

    int64_t workspaceBytes(std::span<TensorRef const>, std::span<TensorRef const>) const override
    {
        return workspace_ > 0 ? workspace_ + kWorkspaceStep : 0;
    }
    bool readsConstant(size_t) const override { return false; }
    int64_t alignment() const override { return kAlignment; }
    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override
    {
        cuda::Current const current(*device_);
        auto asked =
            ask(lt_, handle_, s_, productOf(s_, matrix_multiply::geometryOf(*s_.node, in[0].dims, in[1].dims)));
        if (!asked.ok())
            return std::move(asked).error().in("shapes " + in[0].dims.str() + " and " + in[1].dims.str());
        if (!(*asked)->product.isEmpty())
            cuda::warmUp(device_, [&](CUstream_st* stream) -> Result<void> {
                Owned<LtProduct> operation;
                TW_TRY(makeProduct(lt_, s_, cuda::nowhere(), operation));
                void* const at = cuda::nowhere();
                return launch(**asked, operation.object, {at, at, at, at, at}, stream);
            });
        return std::shared_ptr<Prepared const>(std::move(*asked));
    }
    Result<void> run(RunArgs& args) const override
    {
        auto const* const prepared = static_cast<LtPrepared const*>(args.prepared);
        if (!prepared)
            return internalError("a product by cuBLASLt was not prepared");
        Product const& p = prepared->product;
        if (p.isEmpty())
            return {};
        void const* const bias = s_.bias ? args.inputs[size_t(Epilogue::kBias)].data : nullptr;
        Owned<LtProduct> own;
        LtProduct* operation = nullptr;
        if (args.kept) {
            TW_ASSIGN(operation, keep(*args.kept, bias));
        } else {
            TW_TRY(makeProduct(lt_, s_, bias, own));
            operation = own.object;
        }
        Addresses at{args.inputs[0].data, args.inputs[1].data, nullptr, args.outputs[0].data, args.workspace};
        at.residual = s_.residual ? args.inputs[size_t(Epilogue::kResidual)].data : at.y;
        return launch(*prepared, operation, at, static_cast<CUstream_st*>(args.stream));
    }

private:
    struct Addresses
    {
        void const *a, *b, *residual;
        void *y, *workspace;
    };
    Result<void> launch(LtPrepared const& prepared, LtProduct* operation, Addresses at, CUstream_st* stream) const
    {
        Product const& p = prepared.product;
        int64_t const size = s_.isHalf ? sizeOf(DataType::kHalf) : sizeOf(DataType::kFloat);
        auto ahead = [&](void const* base, int64_t elements) {
            return static_cast<std::byte const*>(base) + elements * size;
        };
        cuda::LtChoice const& choice = choiceOf(prepared);
        uint64_t const step = kWorkspaceStep;
        at.workspace = reinterpret_cast<void*>((cuda::addressOf(at.workspace) + step - 1) / step * step);
        float const one = 1, beta = s_.residual ? 1 : 0;
        Counter outer(p.outer);
        do {
            TW_TRY(
                lt_.check(lt_.cublasLtMatmul(handle_, operation, &one, ahead(at.b, outer.offset(p.bOuter)),
                                             prepared.b.object, ahead(at.a, outer.offset(p.aOuter)), prepared.a.object,
                                             &beta, at.residual, prepared.y.object, at.y, prepared.y.object,
                                             &choice.algorithm, at.workspace, choice.workspaceBytes, stream),
                          "cublasLtMatmul"));
            int64_t const next = p.batchY * p.batch;
            at.y = const_cast<std::byte*>(ahead(at.y, next));
            at.residual = ahead(at.residual, next);
        } while (outer.next());
        return {};
    }
    cuda::LtChoice const& choiceOf(LtPrepared const& p) const
    {
        return p.choices[std::min(rank_, p.choices.size() - 1)];
    }
    Result<LtProduct*> keep(std::unique_ptr<Kept>& kept, void const* bias) const
    {
        if (!kept || static_cast<LtKept&>(*kept).bias != bias) {
            auto made = std::make_unique<LtKept>();
            made->bias = bias;
            TW_TRY(makeProduct(lt_, s_, bias, made->product));
            kept = std::move(made);
        }
        return static_cast<LtKept&>(*kept).product.object;
    }

    std::shared_ptr<cuda::Device const> device_;
    std::shared_ptr<cuda::Libraries> libraries_; // keeps the library
    CublasLt const& lt_;
    cuda::LtHandle* handle_;
    Resolved s_;
    size_t rank_;
    int64_t workspace_;
};

struct Opened
{
    CublasLt const* lt = nullptr;
    cuda::LtHandle* handle = nullptr;
};
Result<Opened> open(Problem const& p)
{
    if (!p.target.cuda || !p.target.cuda->device || !p.target.cuda->libraries)
        return internalError("cuBLASLt is asked without a GPU");
    Opened o;
    TW_ASSIGN(o.lt, p.target.cuda->libraries->cublasLt());
    TW_ASSIGN(o.handle, o.lt->handle(p.target.cuda->device));
    return o;
}

// But for the library and the GPU.
Support supportsProblem(Problem const& p, bool tf32)
{
    TW_SUPPORTS(supportsProductAlone(p));
    DataType const type = p.inputs[0].type;
    if (type != DataType::kFloat && (tf32 || type != DataType::kHalf))
        return Support::no(std::string("computes in ") + (tf32 ? "f32" : "f16 and f32") + ", input 0 is " +
                           tw::nameOf(type));
    for (size_t i = 0; i < p.inputs.size(); ++i)
        if (p.inputs[i].present && p.inputs[i].type != type)
            return Support::no(
                fmt::format("input {} is {}, input 0 {}", i, tw::nameOf(p.inputs[i].type), tw::nameOf(type)));
    Epilogue const& epilogue = p.node->attrsAs<matrix_multiply::Attrs>().epilogue;
    if (epilogue.hasSteps() || epilogueOf(epilogue.activation) < 0)
        return Support::no("the library ends products with ReLU, GELU by tanh, or nothing");
    auto const& operations = p.node->attrsAs<matrix_multiply::Attrs>();
    ir::Value const &a = *p.node->inputs[0], &b = *p.node->inputs[1];
    if (!ir::isStatic(b.shape) && !isKnown(a, operations.a == MatrixOperation::kTranspose ? 1 : 0) &&
        !isKnown(b, operations.b == MatrixOperation::kNone ? 1 : 0))
        return Support::no("the summed dimension is not known when the engine is built");
    Resolved const s = resolve(p, tf32);
    for (bool const most : {false, true}) {
        Product const product = productOf(s, geometryOf(p, most));
        if (product.k == 0)
            return Support::no("nothing is summed");
        if (std::max({product.m, product.n, product.k, product.batch}) > INT32_MAX)
            return Support::no("the library counts rows, columns and batches in 32 bits");
        if (product.outer.volume() > kMostProductLaunches)
            return Support::no(fmt::format("its collections would take {} launches, {} are allowed",
                                           product.outer.volume(), kMostProductLaunches));
        // Of every launch but the first.
        int64_t const step = kAlignment / sizeOf(type);
        auto isUneven = [&](Extents const& strides) {
            return std::any_of(strides.begin(), strides.end(), [&](int64_t v) { return v % step != 0; });
        };
        if (product.outer.volume() > 1 &&
            (isUneven(product.aOuter) || isUneven(product.bOuter) || product.batchY * product.batch % step != 0))
            return Support::no("its collections would begin at addresses that are no multiples of 16 bytes");
    }
    return Support::yes();
}

} // namespace

Support CublasLtTactic::supports(Problem const& p) const
{
    Support const s = supportsProblem(p, tf32_);
    return s.ok ? supportsLibrary(Source::kCublasLt, p) : s;
}

std::vector<Config> CublasLtTactic::configs(Problem const& p) const
{
    std::vector<Config> list;
    auto const opened = open(p);
    if (!opened.ok())
        return list;
    cuda::Current const current(*p.target.cuda->device);
    Resolved const s = resolve(p, tf32_);
    auto const asked = ask(*opened->lt, opened->handle, s, productOf(s, geometryOf(p, false)));
    for (size_t i = 0; asked.ok() && i < std::max<size_t>((*asked)->choices.size(), 1); ++i)
        list.push_back({int64_t(i)});
    return list;
}

// The library keeps what it knows of times to itself: rates of a GPU with 132 multiprocessors, tiles of 128 x 128.
double CublasLtTactic::estimate(Problem const& p, Config const& config) const
{
    constexpr double kHalfRate = 650e6, kTf32Rate = 330e6, kFloatRate = 45e6; // operations in a microsecond
    constexpr double kBytesPerUs = 3e6, kLeastUs = 2.5, kEachRank = 1.03, kTile = 128, kTilesAtOnce = 132;
    Resolved const s = resolve(p, tf32_);
    Product const product = productOf(s, geometryOf(p, false));
    double const m = double(product.m), n = double(product.n), k = double(product.k),
                 batch = double(product.batch * product.outer.volume());
    double const tiles = std::ceil(m / kTile) * std::ceil(n / kTile) * batch;
    double const atOnce = p.target.cuda ? p.target.cuda->multiprocessors : kTilesAtOnce,
                 rounds = std::ceil(tiles / atOnce);
    double const rate = (s.isHalf ? kHalfRate : s.tf32 ? kTf32Rate : kFloatRate) * atOnce / kTilesAtOnce;
    // Few tiles are split along k.
    double const share =
        tiles < atOnce ? std::min(tiles * std::ceil(k / 512), atOnce) / atOnce : tiles / atOnce / rounds;
    double const bytes = (m * k + n * k + m * n * (s.residual ? 2 : 1)) * batch * (s.isHalf ? 2 : 4);
    double const us = std::max(2 * m * n * k * batch / (rate * std::max(share, 1e-3)), bytes / kBytesPerUs);
    return (kLeastUs + us) * std::pow(kEachRank, config.empty() ? 0.0 : double(config[0]));
}

Result<std::string> CublasLtTactic::build(Problem const& p, Config const&) const
{
    TW_ASSIGN(Opened const opened, open(p));
    return fmt::format("cuBLASLt {}", opened.lt->version());
}

Result<std::unique_ptr<Kernel>> CublasLtTactic::load(Problem const& p, Config const& config, std::string const&) const
{
    if (!isConfig(config, 1, 0, kMostChoices - 1))
        return invalidArgument("the plan's configuration of a matrix product by cuBLASLt names no algorithm");
    TW_ASSIGN(Opened const opened, open(p));
    Resolved const s = resolve(p, tf32_);
    auto kernel = std::make_unique<CublasLtKernel>(p.target.cuda->device, p.target.cuda->libraries, *opened.lt,
                                                   opened.handle, s, size_t(config[0]));
    if (isStatic(p))
        TW_TRY(kernel->settleWorkspace(productOf(s, geometryOf(p, true))));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace tw::ops
