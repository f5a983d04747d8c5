// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_product_norm.h"

#include "families/gemm/cuda_gemm_wgmma.h"
#include "families/gemm/cuda_plain_gemm.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops::product_norm {

namespace {

// Rows of y in place.
struct Params
{
    void const *gamma = nullptr, *beta = nullptr;
    void* y = nullptr;
    uint64_t rows = 0, n = 0;
    float epsilon = 0;
};

constexpr char const* kParams = R"(
struct NormParams { void const *gamma, *beta; void* y; u64 rows, n; float epsilon; };
)";

// A block for each row, which it reads three times.
constexpr char const* kPlainText = R"(
TW_INLINE float sum(float a, float b) { return a + b; }
TW_KERNEL normalize(const __grid_constant__ NormParams p)
{
    __shared__ float scratch[32];
    T* const y = static_cast<T*>(p.y) + i64(blockIdx.x) * p.n;
    float mean = 0, variance = 0;
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x) mean += load<float>(y[i]);
    mean = blockReduce(mean, 0.0f, scratch, sum) / float(p.n);
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x) {
        float const v = load<float>(y[i]) - mean;
        variance += v * v;
    }
    float const deviation = sqrt(blockReduce(variance, 0.0f, scratch, sum) / float(p.n) + p.epsilon);
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x)
        y[i] = store<T>((load<float>(y[i]) - mean) / deviation * load<float>(static_cast<T const*>(p.gamma)[i]) +
                        load<float>(static_cast<T const*>(p.beta)[i]));
}
)";

// A warp for each row of FP16, whose units of 8 numbers its lanes hold in registers.
constexpr char const* kRowsText = R"(
TW_INLINE float warpSum(float v)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);
    return v;
}
TW_KERNEL __launch_bounds__(128) normalize(const __grid_constant__ NormParams p)
{
    constexpr int EACH = $each$;
    releaseDependents();
    waitForPrevious();
    u64 const row = u64(blockIdx.x) * 4 + threadIdx.x / 32;
    int const lane = threadIdx.x % 32, units = int(p.n) / 8;
    if (row >= p.rows) return;
    Unit* const y = reinterpret_cast<Unit*>(static_cast<f16*>(p.y) + row * p.n);
    Unit x[EACH];
    float v[EACH][8], mean = 0, variance = 0;
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (i * 32 + lane < units) x[i] = y[i * 32 + lane];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (i * 32 + lane < units)
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                v[i][e] = e % 2 ? highHalf(x[i].v[e / 2]) : lowHalf(x[i].v[e / 2]);
                mean += v[i][e];
            }
    mean = warpSum(mean) / float(p.n);
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (i * 32 + lane < units)
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                v[i][e] -= mean;
                variance += v[i][e] * v[i][e];
            }
    float const scale = 1 / sqrtf(warpSum(variance) / float(p.n) + p.epsilon);
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (i * 32 + lane < units) {
            Unit const g = static_cast<Unit const*>(p.gamma)[i * 32 + lane], b = static_cast<Unit const*>(p.beta)[i * 32 + lane];
#pragma unroll
            for (int e = 0; e < 4; ++e)
                x[i].v[e] = packHalves(v[i][e * 2] * scale * lowHalf(g.v[e]) + lowHalf(b.v[e]),
                                       v[i][e * 2 + 1] * scale * highHalf(g.v[e]) + highHalf(b.v[e]));
            y[i * 32 + lane] = x[i];
        }
}
)";

constexpr int kRowsOfBlock = 4;
constexpr int64_t kMostRow = 2048; // 64 numbers of a lane

Params paramsOf(double epsilon, RunArgs const& args)
{
    TensorRef const& y = args.outputs[0];
    Params p;
    p.gamma = args.inputs[Epilogue::kGamma].data;
    p.beta = args.inputs[Epilogue::kBeta].data;
    p.y = y.data;
    p.n = uint64_t(y.dims[y.dims.rank - 1]);
    p.rows = uint64_t(y.count()) / p.n;
    p.epsilon = float(epsilon);
    return p;
}

double epsilonOf(Problem const& problem)
{
    return problem.node->attrsAs<matrix_multiply::Attrs>().epilogue.epsilon;
}

} // namespace

CudaKernels generatePlain(Problem const& problem, Config const&)
{
    constexpr int kThreads = 256;
    CudaKernels out = multiplyKernels(problem);
    if (!matrix_multiply::hasNorm(*problem.node))
        return out;
    out.source += std::string(kParams) + kPlainText;
    out.names.push_back("normalize");
    out.run = [product = out.run, epsilon = epsilonOf(problem)](CudaLaunch const& launch,
                                                                RunArgs& args) -> Result<void> {
        TW_TRY(product(launch, args));
        Params const p = paramsOf(epsilon, args);
        return launch(1, int64_t(p.rows), kThreads, p);
    };
    return out;
}

Support supports(Problem const& problem)
{
    if (Support const norm = supportsNorm(problem, true); !norm.ok)
        return norm;
    if (Support const product = gemm_f16::supports(problem, GemmF16Way::kHalf); !product.ok)
        return product;
    Extents const& y = problem.outputs[0].maxDims;
    int64_t const n = y[y.rank - 1];
    if (!ir::isStatic(problem.node->outputs[0]->shape) || n % 8 != 0 || n > kMostRow)
        return Support::no("rows have up to " + std::to_string(kMostRow) + " numbers in steps of 8");
    return Support::yes();
}

std::vector<Config> configs(Problem const& problem)
{
    return gemm_f16::configs(problem, GemmF16Way::kHalf);
}

// y is read and written once more, at 3.6 TB/s.
double estimate(Problem const& problem, Config const& config)
{
    constexpr double kLaunchUs = 2, kBytesPerUs = 3.6e6;
    return gemm_f16::estimate(problem, config, GemmF16Way::kHalf) + kLaunchUs +
           double(problem.outputs[0].dims.volume() * 4) / kBytesPerUs;
}

CudaKernels generate(Problem const& problem, Config const& config)
{
    Extents const& y = problem.outputs[0].maxDims;
    CudaKernels out = gemm_f16::generate(problem, config, GemmF16Way::kHalf);
    if (out.names.empty()) // there is none
        return out;
    out.source += kParams + cuda::expand(kRowsText, {{"each", std::to_string(cuda::ceilDiv(y[y.rank - 1], 256))}});
    out.names.push_back("normalize");
    out.run = [product = out.run, epsilon = epsilonOf(problem)](CudaLaunch const& launch,
                                                                RunArgs& args) -> Result<void> {
        TW_TRY(product(launch, args));
        Params const p = paramsOf(epsilon, args);
        return launch(1, blocksFor(int64_t(p.rows), kRowsOfBlock), kRowsOfBlock * 32, p);
    };
    return out;
}

} // namespace tw::ops::product_norm
