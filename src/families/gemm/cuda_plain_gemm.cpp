// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_plain_gemm.h"

#include "families/elementwise/cuda_pointwise.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256, kTile = 64;

struct Params
{
    void const *a = nullptr, *b = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    int64_t m = 0, n = 0, k = 0;
    int64_t aRow = 0, aColumn = 0, bRow = 0, bColumn = 0;
    cuda::Div tilesM, tilesN;
    cuda::Loop<2> batch; // a, b
};

constexpr char const* kText = R"(
struct Params {
    void const *a, *b, *bias, *residual; void* y; i64 m, n, k, aRow, aColumn, bRow, bColumn; Div tilesM, tilesN; Loop<2> batch;
};
typedef $t$ T;
TW_KERNEL multiply(const __grid_constant__ Params p)
{
    __shared__ float as[16][68]; // [k, m]
    __shared__ float bs[16][68]; // [k, n]
    idx const block = blockIdx.x, rest = divide(block, p.tilesN), batch = divide(rest, p.tilesM);
    idx const m0 = (rest - batch * idx(p.tilesM.d)) * 64, n0 = (block - rest * idx(p.tilesN.d)) * 64;
    idx const m = idx(p.m), n = idx(p.n), k = idx(p.k);
    off at[2];
    locate<8>(p.batch, batch, at);
    T const* const a = static_cast<T const*>(p.a) + at[0];
    T const* const b = static_cast<T const*>(p.b) + at[1];
    int const t = threadIdx.x;
    // Threads walk along the side that lies together in memory.
    bool const aAlongK = p.aColumn == 1, bAlongK = p.bRow == 1 && p.bColumn != 1;
    int const ak = aAlongK ? t % 16 : t / 64, am = aAlongK ? t / 16 : t % 64;
    int const akStep = aAlongK ? 0 : 4, amStep = aAlongK ? 16 : 0;
    int const bk = bAlongK ? t % 16 : t / 64, bn = bAlongK ? t / 16 : t % 64;
    int const bkStep = bAlongK ? 0 : 4, bnStep = bAlongK ? 16 : 0;
    int const ty = t / 16 * 4, tx = t % 16 * 4;
    float sum[4][4] = {};
    for (idx k0 = 0; k0 < k; k0 += 16) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            idx const row = m0 + am + amStep * r, ka = k0 + ak + akStep * r;
            as[ak + akStep * r][am + amStep * r] =
                row < m && ka < k ? load<float>(a[off(row) * off(p.aRow) + off(ka) * off(p.aColumn)]) : 0;
            idx const column = n0 + bn + bnStep * r, kb = k0 + bk + bkStep * r;
            bs[bk + bkStep * r][bn + bnStep * r] =
                column < n && kb < k ? load<float>(b[off(kb) * off(p.bRow) + off(column) * off(p.bColumn)]) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 16; ++q) {
            float va[4], vb[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) { va[i] = as[q][ty + i]; vb[i] = bs[q][tx + i]; }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] += va[i] * vb[j];
        }
        __syncthreads();
    }
    i64 const first = i64(batch) * p.m * p.n;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            idx const row = m0 + ty + i, column = n0 + tx + j;
            if (row >= m || column >= n) continue;
            float v = sum[i][j];
            if (p.bias) v += load<float>(static_cast<T const*>(p.bias)[column]);
            i64 const at = first + i64(row) * p.n + column;
            if (p.residual) v += load<float>(static_cast<T const*>(p.residual)[at]);
            static_cast<T*>(p.y)[at] = store<T>(activate(v));
        }
}
)";

} // namespace

CudaKernels multiplyKernels(Problem const& problem)
{
    FusedActivation const& activation = problem.node->attrsAs<matrix_multiply::Attrs>().epilogue.activation;
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"multiply"};
    out.source = activationText("activate", activation.kind, activation.alpha, activation.beta) +
                 cuda::expand(kText, {{"t", cuda::storageOf(problem.outputs[0].type)}}) + cuda::sizeCheck<Params>();
    out.run = [node = problem.node](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        matrix_multiply::Geometry const g =
            matrix_multiply::geometryOf(*node, args.inputs[0].dims, args.inputs[1].dims);
        Params p;
        p.a = args.inputs[0].data;
        p.b = args.inputs[1].data;
        p.y = args.outputs[0].data;
        auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
        p.bias = optional(Epilogue::kBias);
        p.residual = optional(Epilogue::kResidual);
        p.m = g.m;
        p.n = g.n;
        p.k = g.k;
        p.aRow = g.aRow;
        p.aColumn = g.aColumn;
        p.bRow = g.bRow;
        p.bColumn = g.bColumn;
        int64_t const tilesM = blocksFor(g.m, kTile), tilesN = blocksFor(g.n, kTile);
        p.tilesM = cuda::divBy(tilesM);
        p.tilesN = cuda::divBy(tilesN);
        p.batch.set(g.batch);
        p.batch.setStrides(0, g.aBatch);
        p.batch.setStrides(1, g.bBatch);
        return launch(0, tilesM * tilesN * g.batch.volume(), kThreads, p);
    };
    return out;
}

} // namespace tw::ops
