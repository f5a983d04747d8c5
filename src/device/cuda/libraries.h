// SPDX-License-Identifier: Apache-2.0
// cuBLASLt and cuDNN, opened when a tactic first asks for them: they are large, and many machines have neither. What
// was found, or why not, holds as long as this lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "device/cuda/cudnn.h"
#include "device/cuda/device.h"
#include "device/cuda/library.h"

namespace tw::cuda {

// cuBLASLt, opened at run time when it is there. Types and numbers are our own text; they are ABI. Matrices are stored
// by columns there: a matrix of ours, by rows, is its transpose.

// The library's own.
struct LtHandle;
struct LtProduct;
struct LtLayout;
struct LtPreference;

struct LtAlgorithm
{
    uint64_t data[8]{};
};
// What its heuristic answers for one algorithm.
struct LtChoice
{
    LtAlgorithm algorithm;
    size_t workspaceBytes = 0;
    int status = 0;
    float waves = 0;
    int reserved[4]{};
};

// Numbers that we use.
enum : int
{
    kLtFloat = 0, // types of elements
    kLtHalf = 2,

    kLtComputeFloat = 68,
    kLtComputeTf32 = 77,

    kLtProductTransposeA = 3, // attributes of a product, 32 bits each but for the address
    kLtProductTransposeB = 4,
    kLtProductEpilogue = 7,
    kLtProductBias = 8, // address

    kLtTranspose = 1,

    kLtEpilogueNone = 1,
    kLtEpilogueRelu = 2, // the others are sums with
    kLtEpilogueBias = 4,
    kLtEpilogueGelu = 32,

    kLtLayoutBatch = 5,       // 32 bits
    kLtLayoutBatchStride = 6, // 64 bits, in elements

    kLtPreferWorkspace = 1,  // most bytes, 64 bits
    kLtPreferReductions = 3, // mask, 32 bits
    kLtPreferAlignmentA = 5, // bytes, 32 bits; B, C and D follow

    kLtReduceInFloat = 2, // parts of a sum meet in the type that sums have, nothing is rounded between
};

class CublasLt
{
public:
    ~CublasLt();
    CublasLt(CublasLt const&) = delete;
    CublasLt& operator=(CublasLt const&) = delete;
    static Result<std::unique_ptr<CublasLt>> open(SearchPath const& path);

    int version() const { return version_; } // 130100 is 13.1
    // Of the GPU, made when it is first asked for; several threads may use it at once.
    Result<LtHandle*> handle(std::shared_ptr<Device const> const& device) const;
    // "cublasLtMatmul: ..." as an error, or success.
    Result<void> check(int status, char const* call) const;

#define TW_CUBLASLT(name, result, parameters) result(*name) parameters = nullptr;
#include "device/cuda/cublaslt.def"
#undef TW_CUBLASLT

private:
    struct Opened
    {
        std::shared_ptr<Device const> device; // its context lives as long
        LtHandle* handle = nullptr;
    };
    CublasLt() = default;
    std::unique_ptr<Library> library_;
    int version_ = 0;
    mutable std::mutex mutex_;
    mutable std::map<CUctx_st*, Opened> handles_;
};

class Libraries
{
public:
    Libraries(SearchPath cublasLt, SearchPath cudnn) : cublasLtPath_(std::move(cublasLt)), cudnnPath_(std::move(cudnn))
    {}
    Result<CublasLt const*> cublasLt();
    Result<Cudnn const*> cudnn();

private:
    SearchPath cublasLtPath_, cudnnPath_;
    std::mutex mutex_;
    std::unique_ptr<CublasLt> cublasLt_;
    std::unique_ptr<Cudnn> cudnn_;
    std::optional<Error> noCublasLt_, noCudnn_;
};

} // namespace tw::cuda
