// SPDX-License-Identifier: Apache-2.0
// The tensors of one execution context: host and device buffers, shapes, and where each element lies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <NvInferSafeRuntime.h>

#include "device_memory.h"
#include "library.h"
#include "recorded.h"

namespace tw::trtexec {

// Maps an index over [batch, dims] in rows to the element's place in the buffer. Vectorized formats keep `components`
// neighbours of one dimension together and pad it up to a multiple of that.
struct Layout
{
    nvinfer1::Dims dims{};
    int64_t batch = 1; // 1 for explicit batch
    bool linear = true;
    nvinfer1::Dims strides{}; // in vectors of `components` elements
    int32_t vectorDim = -1;
    int32_t components = 1;
    int64_t batchStride = 0; // elements

    int64_t count() const; // elements without padding
    int64_t place(int64_t index) const;
    int64_t elements() const; // elements of the buffer, padding included
};

// Takes the memory of an output whose size is known only when it has been computed.
class GrowingOutput : public nvinfer1::IOutputAllocator
{
public:
    void* reallocateOutput(char const* tensorName, void* currentMemory, uint64_t size,
                           uint64_t alignment) noexcept override;
    void notifyShape(char const*, nvinfer1::Dims const& dims) noexcept override { dims_ = dims; }

    DeviceBuffer const& buffer() const { return buffer_; }
    nvinfer1::Dims const& dims() const { return dims_; }

private:
    DeviceBuffer buffer_;
    nvinfer1::Dims dims_{-1, {}};
};

struct Binding
{
    std::string name;
    int32_t index = 0; // among the engine's bindings (implicit batch)
    bool input = false;
    nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
    bool onHost = false; // a shape tensor: the engine reads or writes host memory
    Layout layout;
    HostBuffer host;
    DeviceBuffer device;
    std::unique_ptr<GrowingOutput> growing;

    size_t sizeBytes() const { return static_cast<size_t>(layout.elements()) * bytesPerElement(type); }
    double value(int64_t index) const; // of `host`, index over [batch, dims] in rows
    void setValue(int64_t index, double value);
};

// Gives a binding with a layout its buffers.
void allocate(Binding& binding);
// Fills input number `number` from its file, its recorded tensor (or null), the numbers of a shape tensor, or with random ones.
void fillInput(Log& log, Binding& binding, Options const& options, RecordedTensor const* recorded, size_t number,
               bool announce);
// That each file of --loadInputs is of an input; what: "engine".
void checkInputFiles(Options const& options, std::vector<Binding> const& bindings, char const* what);

class Bindings
{
public:
    // Sets the input shapes of the context, allocates and fills the inputs, and hands out addresses.
    Bindings(Log& log, nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext& context, Options const& options,
             std::vector<RecordedTensor> const& recorded, bool firstStream);

    // Of a safety engine: all shapes are fixed.
    Bindings(Log& log, nvinfer1::safe::ICudaEngine& engine, nvinfer1::safe::IExecutionContext& context,
             Options const& options, std::vector<RecordedTensor> const& recorded, bool firstStream);

    // In the order of the stream, a cudaStream_t; null: the null stream.
    void copyInputs(void* stream);
    void copyOutputs(void* stream);
    // One run. False when the library refuses.
    bool enqueue(void* stream);
    // Outputs whose size and place are known only when a run is done: queries cannot be given ahead.
    bool hasGrowingOutputs() const;

    std::vector<Binding> const& all() const { return bindings_; }

private:
    void createImplicit(Options const& options);
    void createExplicit();
    void setInputShapes(Log& log, Options const& options, std::vector<RecordedTensor> const& recorded);
    void fillInputs(Log& log, Options const& options, std::vector<RecordedTensor> const& recorded, bool announce);
    void createOutputs(Log& log, bool announce);
    std::vector<size_t> matchInputs(Options const& options, std::vector<RecordedTensor> const& recorded) const;

    nvinfer1::ICudaEngine* engine_ = nullptr; // null: a safety engine
    nvinfer1::IExecutionContext* context_ = nullptr;
    nvinfer1::safe::IExecutionContext* safe_ = nullptr;
    int32_t batch_ = 0; // 0: explicit batch
    std::vector<Binding> bindings_;
    std::vector<void*> addresses_; // by binding index (implicit batch)
};

} // namespace tw::trtexec
