// SPDX-License-Identifier: Apache-2.0
// cuDNN 9, opened at run time when it is there: its backend API, in which everything is a descriptor with attributes.
// Types and numbers are our own text; they are ABI.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/cuda/device.h"
#include "device/cuda/library.h"

namespace tw::cuda {

struct CudnnHandle; // the library's own

// Numbers that we use.
enum : int
{
    kDnnPointwise = 0, // kinds of descriptors
    kDnnConvolution = 1,
    kDnnEngineConfig = 3,
    kDnnHeuristic = 4,
    kDnnPlan = 5,
    kDnnConvolutionForward = 10,
    kDnnPointwiseOperation = 13,
    kDnnGraph = 15,
    kDnnPack = 16,
    kDnnTensor = 17,
    kDnnProduct = 18,
    kDnnProductOperation = 19,
    kDnnReduction = 21,
    kDnnReductionOperation = 22,

    kDnnTypeHandle = 0, // types of attributes
    kDnnTypeDataType = 1,
    kDnnTypeBoolean = 2,
    kDnnTypeInt64 = 3,
    kDnnTypeFloat = 4,
    kDnnTypeDouble = 5,
    kDnnTypeAddress = 6,
    kDnnTypeConvolutionMode = 7,
    kDnnTypeHeuristicMode = 8,
    kDnnTypePointwiseMode = 14,
    kDnnTypeDescriptor = 15,
    kDnnTypeReductionMode = 18,
    kDnnTypeChar = 24,

    kDnnFloat = 0, // types of elements
    kDnnHalf = 2,
    kDnnInt32 = 4,
    kDnnBoolean = 11,

    kDnnAdd = 0, // pointwise modes
    kDnnMultiply = 1,
    kDnnDivide = 6,
    kDnnSubtract = 9,
    kDnnExp = 13,
    kDnnLog = 15,
    kDnnRelu = 100,
    kDnnTanh = 101,
    kDnnSigmoid = 102,
    kDnnGelu = 104,
    kDnnSwish = 106,
    kDnnGeluTanh = 107,
    kDnnGreaterOrEqual = 303,
    kDnnIndex = 501,  // of each element along an axis
    kDnnSelect = 601, // x where it is true, else b

    kDnnReduceAdd = 0,
    kDnnReduceMax = 3,
    kDnnCrossCorrelation = 1,
    kDnnHeuristicA = 3,

    // Attributes.
    kDnnPointwiseMode = 0,
    kDnnPointwiseCompute = 1,
    kDnnPointwiseReluLower = 3,
    kDnnPointwiseReluUpper = 4,
    kDnnPointwiseAxis = 9,
    kDnnConvolutionCompute = 100,
    kDnnConvolutionModeOf = 101,
    kDnnConvolutionDilations = 102,
    kDnnConvolutionStrides = 103,
    kDnnConvolutionAfter = 104,
    kDnnConvolutionBefore = 105,
    kDnnConvolutionRank = 106,
    kDnnHeuristicMode = 200,
    kDnnHeuristicGraph = 201,
    kDnnHeuristicResults = 202,
    kDnnPlanHandle = 400,
    kDnnPlanConfig = 401,
    kDnnPlanWorkspace = 402,
    kDnnPlanJson = 405,
    kDnnForwardAlpha = 700,
    kDnnForwardBeta = 701,
    kDnnForwardConvolution = 702,
    kDnnForwardW = 703,
    kDnnForwardX = 704,
    kDnnForwardY = 705,
    kDnnPointwiseOf = 750,
    kDnnPointwiseX = 751,
    kDnnPointwiseB = 752,
    kDnnPointwiseY = 753,
    kDnnPointwiseChoice = 758,
    kDnnGraphHandle = 800,
    kDnnGraphOperations = 801,
    kDnnTensorAlignment = 900,
    kDnnTensorType = 901,
    kDnnTensorDims = 902,
    kDnnTensorStrides = 903,
    kDnnTensorId = 906,
    kDnnTensorIsVirtual = 907,
    kDnnTensorIsByValue = 908,
    kDnnPackIds = 1000,
    kDnnPackAddresses = 1001,
    kDnnPackWorkspace = 1003,
    kDnnProductCompute = 1500,
    kDnnProductA = 1520,
    kDnnProductB = 1521,
    kDnnProductC = 1522,
    kDnnProductOf = 1523,
    kDnnReductionMode = 1600,
    kDnnReductionCompute = 1601,
    kDnnReductionX = 1610,
    kDnnReductionY = 1611,
    kDnnReductionOf = 1612,
};

class Cudnn
{
public:
    ~Cudnn();
    Cudnn(Cudnn const&) = delete;
    Cudnn& operator=(Cudnn const&) = delete;
    static Result<std::unique_ptr<Cudnn>> open(SearchPath const& path);

    int version() const { return version_; } // 91900 is 9.19.0
    // "cudnnBackendFinalize: ..." with the library's own message as an error, or success.
    Result<void> check(int status, char const* call) const;

    // A handle that nobody else has for as long as this lives: they are for one thread at a time, and few are made.
    class Lent
    {
    public:
        Lent(Cudnn const& cudnn, CUctx_st* context, CudnnHandle* handle)
            : cudnn_(cudnn), context_(context), handle_(handle)
        {}
        ~Lent();
        Lent(Lent const&) = delete;
        Lent& operator=(Lent const&) = delete;
        CudnnHandle* get() const { return handle_; }

    private:
        Cudnn const& cudnn_;
        CUctx_st* context_;
        CudnnHandle* handle_;
    };
    Result<std::unique_ptr<Lent>> lend(std::shared_ptr<Device const> const& device) const;

    // What `make` gives for the key, made once: compiled plans, which take seconds and many threads ask for.
    Result<std::string> once(std::string const& key, std::function<Result<std::string>()> const& make) const;

#define TW_CUDNN(name, result, parameters) result(*name) parameters = nullptr;
#include "device/cuda/cudnn.def"
#undef TW_CUDNN

private:
    struct Handles
    {
        std::shared_ptr<Device const> device; // its context lives as long
        std::vector<CudnnHandle*> all, free;
    };
    Cudnn() = default;
    std::unique_ptr<Library> library_;
    int version_ = 0;
    mutable std::mutex mutex_;
    mutable std::map<CUctx_st*, Handles> handles_;
    mutable std::condition_variable made_;
    mutable std::set<std::string, std::less<>> making_;
    mutable std::map<std::string, Result<std::string>, std::less<>> texts_;
};

// A descriptor of the backend API; errors say which attribute of what was refused.
class CudnnDescriptor
{
public:
    static Result<CudnnDescriptor> create(Cudnn const& cudnn, int kind);

    void* get() const { return descriptor_.get(); }
    Result<void> set(int attribute, int type, int64_t count, void const* values);
    Result<void> setNumber(int attribute, int64_t value) { return set(attribute, kDnnTypeInt64, 1, &value); }
    Result<void> setNumbers(int attribute, std::span<int64_t const> values)
    {
        return set(attribute, kDnnTypeInt64, int64_t(values.size()), values.data());
    }
    // Of an enumeration.
    Result<void> setMode(int attribute, int type, int value) { return set(attribute, type, 1, &value); }
    Result<void> setDescriptor(int attribute, CudnnDescriptor const& value)
    {
        void* const d = value.get();
        return set(attribute, kDnnTypeDescriptor, 1, &d);
    }
    Result<void> finalize();
    // How many elements were read.
    Result<int64_t> read(int attribute, int type, int64_t most, void* values) const;

private:
    struct Destroy
    {
        Cudnn const* cudnn;
        void operator()(void* descriptor) const { cudnn->cudnnBackendDestroyDescriptor(descriptor); }
    };
    // what: "setting attribute", of that number if it is none below 0.
    Result<void> check(int status, char const* what, int attribute = -1) const;
    int kind_ = 0;
    std::unique_ptr<void, Destroy> descriptor_;
};

} // namespace tw::cuda
