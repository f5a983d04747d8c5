// SPDX-License-Identifier: Apache-2.0
// Operation graphs of cuDNN, and the plans that the library makes of them: each for its sizes alone.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/cudnn.h"

namespace tw::cuda {

// A plan, ready to run by any handle of the GPU.
class CudnnPlan
{
public:
    // From text() of one that the same version of the library made.
    static Result<CudnnPlan> restore(Cudnn const& cudnn, CudnnHandle* handle, std::string const& text);

    Result<std::string> text() const;
    int64_t workspaceBytes() const { return workspaceBytes_; }
    void* get() const { return plan_.get(); }

private:
    friend class CudnnGraph;
    Result<void> finish();
    CudnnDescriptor plan_;
    std::vector<CudnnDescriptor> parts_; // what it was made of
    int64_t workspaceBytes_ = 0;
};

struct CudnnTensor
{
    int64_t id = 0; // of this graph, the same when a run gives its address
    int type = kDnnFloat;
    std::array<int64_t, 4> dims{}, strides{};
    bool isInner = false;  // stays within the kernel: has no address
    bool isNumber = false; // one element, read from the host's memory when a run is put on a stream
};

struct CudnnPointwise
{
    int mode = kDnnAdd;
    double lower = 0, upper = 0; // of kDnnRelu: bounds, where lower < upper
    int axis = 0;                // of kDnnIndex
    int compute = kDnnFloat;     // type of elements
};

struct CudnnWindow
{
    std::array<int64_t, 2> stride{1, 1}, dilation{1, 1}, before{}, after{}; // rows, columns
    bool operator==(CudnnWindow const&) const = default;
};

// Operations are added in the order of the data; sums are in float.
class CudnnGraph
{
public:
    CudnnGraph(Cudnn const& cudnn, CudnnHandle* handle) : cudnn_(cudnn), handle_(handle) {}
    Result<void*> tensor(CudnnTensor const& t);
    // x [n, c, ...], w [k, c, ...], y [n, k, ...]
    Result<void> convolve(CudnnWindow const& window, void* x, void* w, void* y);
    // c = a b, of the last two dimensions
    Result<void> multiply(void* a, void* b, void* c);
    // Over the dimensions that are 1 in y.
    Result<void> reduce(int mode, void* x, void* y);
    // b: null where the mode takes one operand. `choice`: of kDnnSelect.
    Result<void> pointwise(CudnnPointwise const& what, void* x, void* b, void* y, void* choice = nullptr);
    // How many engines the library's heuristic lists, best first; at most 8.
    Result<int64_t> engines();
    // The plan of the one of place `rank` in it; it may be compiled now, which takes a second.
    Result<CudnnPlan> plan(int rank);

private:
    // Their configs.
    Result<std::vector<CudnnDescriptor>> ask();
    Result<void*> keep(CudnnDescriptor d);
    // Finalizes an operation with these descriptors as attributes.
    Result<void> add(CudnnDescriptor operation, std::initializer_list<std::pair<int, void*>> attributes);

    Cudnn const& cudnn_;
    CudnnHandle* handle_;
    std::vector<CudnnDescriptor> parts_;
    std::vector<void*> operations_;
};

// Addresses of a run, by ids, in the library's form.
struct CudnnAddresses
{
    static constexpr size_t kMost = 8;
    std::array<int64_t, kMost> ids{};
    std::array<void const*, kMost> tensors{};
    size_t count = 0;
    void* workspace = nullptr;

    void add(int64_t id, void const* address)
    {
        ids[count] = id;
        tensors[count++] = address;
    }
    bool operator==(CudnnAddresses const&) const = default;
};
Result<CudnnDescriptor> makePack(Cudnn const& cudnn, CudnnAddresses const& at);

// Scaled dot-product attention, y = softmax(scale q k' + mask) v, as an operation graph of cuDNN.
struct CudnnAttention
{
    // Names of tensors; those from kInner on stay within the kernel.
    enum Id : int64_t
    {
        kQ = 1,
        kK,
        kV,
        kMask,
        kScale, // a number
        kY,
        kLowest, // a number: the score of keys after the query, where it is causal
        kInner,
    };
    using Four = std::array<int64_t, 4>;

    // All in FP16: q, y [batch, heads, rows, size], k, v [batch, heads, columns, size], with these strides.
    int64_t batch = 0, heads = 0, rows = 0, columns = 0, size = 0;
    Four q{}, k{}, v{}, y{};
    bool mask = false;
    Four maskDims{}, maskStrides{}; // [batch or 1, heads or 1, rows or 1, columns]
    bool causal = false;            // each query sees the keys up to its own place

    std::string text() const; // all of it
    Result<CudnnGraph> graph(Cudnn const& cudnn, CudnnHandle* handle) const;
};

// A 2-D convolution with what follows it, y = f(conv(x, w) + bias + residual), as an operation graph of cuDNN.
struct CudnnConvolution
{
    // Names of tensors; those from kInner on stay within the kernel.
    enum Id : int64_t
    {
        kX = 1,
        kW,
        kBias,
        kResidual,
        kY,
        kInner,
    };

    int type = kDnnHalf;                              // of x, w, residual, y; bias and what follows are in float
    int64_t n = 0, c = 0, k = 0;                      // x [n, c, in] and y [n, k, out], stored by pixels without gaps
    std::array<int64_t, 2> in{}, out{}, windowSize{}; // rows, columns; w [k, windowSize, c]
    CudnnWindow window;
    bool residual = false;
    bool activates = false;
    CudnnPointwise activation;

    std::string text() const; // all of it
    Result<CudnnGraph> graph(Cudnn const& cudnn, CudnnHandle* handle) const;
};

} // namespace tw::cuda
