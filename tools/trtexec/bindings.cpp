// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <algorithm>
#include <random>

#include <fmt/core.h>

#include "files.h"
#include "value_syntax.h"

namespace tw::trtexec {

using nvinfer1::DataType;
using nvinfer1::Dims;

namespace {

// Values of the guide's random inputs: numbers in [-1, 1), integers in [-128, 127]; the same on every run.
void fillRandom(Binding& binding, uint32_t seed)
{
    std::mt19937 random(seed);
    bool const integer = binding.type == DataType::kINT32 || binding.type == DataType::kINT8;
    for (int64_t i = 0, n = binding.layout.count(); i < n; ++i) {
        uint32_t const bits = random();
        double value = bits * 0x1p-31 - 1;
        if (integer)
            value = static_cast<int32_t>(bits & 255) - 128;
        else if (binding.type == DataType::kBOOL)
            value = bits & 1;
        else if (binding.type == DataType::kUINT8)
            value = bits & 255;
        binding.setValue(i, value);
    }
}

void fillFromFile(Binding& binding, std::string const& path)
{
    std::vector<std::byte> const bytes = readFile(path);
    if (bytes.size() != binding.host.size())
        throw Failure(fmt::format("--loadInputs: '{}' has {} bytes, but input '{}' ({}, {}) takes exactly {}", path,
                                  bytes.size(), binding.name, dataTypeText(binding.type), dimsText(binding.layout.dims),
                                  binding.host.size()));
    std::copy(bytes.begin(), bytes.end(), binding.host.data());
}

void fillFromRecorded(Binding& binding, RecordedTensor const& recorded)
{
    int64_t const wanted = binding.layout.count();
    if (static_cast<int64_t>(recorded.count()) != wanted) {
        Shape shape;
        for (int64_t const d : recorded.dims)
            shape.push_back(static_cast<int32_t>(d));
        throw Failure("--loadInputsFrom: tensor '" + recorded.name + "' has shape " + shapeText(shape) + ", input '" +
                      binding.name + "' has " + dimsText(binding.layout.dims));
    }
    for (int64_t i = 0; i < wanted; ++i)
        binding.setValue(i, recorded.at(static_cast<size_t>(i)));
}

// A shape tensor holds the numbers that --shapes gives for it, else ones.
void fillShapeValues(Binding& binding, Shape const* values)
{
    int64_t const count = binding.layout.count();
    if (values && static_cast<int64_t>(values->size()) != count)
        throw Failure(fmt::format("--shapes: shape tensor '{}' has {} value(s), {} were given", binding.name, count,
                                  values->size()));
    for (int64_t i = 0; i < count; ++i)
        binding.setValue(i, values ? (*values)[static_cast<size_t>(i)] : 1);
}

std::string withBatch(Binding const& binding, int32_t batch)
{
    std::string const dims = dimsText(binding.layout.dims);
    if (batch == 0)
        return dims;
    return fmt::format("{}{}", batch, dims.empty() ? "" : "x" + dims);
}

void announceBinding(Log& log, Binding const& binding, int32_t batch)
{
    log.info("Created " + std::string(binding.input ? "input" : "output") + " binding for " + binding.name +
             " with dimensions " + withBatch(binding, batch));
}

// Of a format with vectors.
template <class Engine, class Context>
void setVectors(Layout& layout, Engine const& engine, Context const& context, char const* name)
{
    layout.strides = context.getTensorStrides(name);
    layout.vectorDim = engine.getTensorVectorizedDim(name);
    layout.components = std::max(engine.getTensorComponentsPerElement(name), 1);
}

} // namespace

// Padded sizes that wrap or pass the address space are caught here, before anything is allocated.
void allocate(Binding& binding)
{
    int64_t const elements = binding.layout.elements();
    if (elements < 0 || elements > (int64_t{1} << 46))
        throw Failure("tensor '" + binding.name + "' of shape " + dimsText(binding.layout.dims) + " is too large");
    binding.host = HostBuffer(binding.sizeBytes());
    binding.device = DeviceBuffer(binding.sizeBytes());
}

void checkInputFiles(Options const& options, std::vector<Binding> const& bindings, char const* what)
{
    for (auto const& [name, file] : options.inference.inputFiles)
        if (std::none_of(bindings.begin(), bindings.end(),
                         [&, &name = name](Binding const& b) { return b.input && b.name == name; }))
            throw Failure(fmt::format("--loadInputs: the {} has no input '{}'", what, name));
}

void fillInput(Log& log, Binding& b, Options const& options, RecordedTensor const* recorded, size_t number,
               bool announce)
{
    auto const file = options.inference.inputFiles.find(b.name);
    auto const shape = options.inference.shapes.find(b.name);
    if (file != options.inference.inputFiles.end()) {
        fillFromFile(b, file->second);
        if (announce)
            log.info("Using values loaded from " + file->second + " for input " + b.name);
    } else if (recorded) {
        fillFromRecorded(b, *recorded);
        if (announce)
            log.info("Using values loaded from " + options.inference.inputFolder + " for input " + b.name);
    } else if (b.onHost) {
        fillShapeValues(b, shape == options.inference.shapes.end() ? nullptr : &shape->second);
    } else {
        fillRandom(b, static_cast<uint32_t>(number) + 1);
        if (announce)
            log.info("Using random values for input " + b.name);
    }
}

Bindings::Bindings(Log& log, nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext& context,
                   Options const& options, std::vector<RecordedTensor> const& recorded, bool firstStream)
    : engine_(&engine), context_(&context)
{
    if (engine.hasImplicitBatchDimension()) {
        batch_ = std::max(options.inference.batch, 1);
        createImplicit(options);
    } else {
        createExplicit();
        setInputShapes(log, options, recorded);
    }
    fillInputs(log, options, recorded, firstStream);
    createOutputs(log, firstStream);
}

Bindings::Bindings(Log& log, nvinfer1::safe::ICudaEngine& engine, nvinfer1::safe::IExecutionContext& context,
                   Options const& options, std::vector<RecordedTensor> const& recorded, bool firstStream)
    : safe_(&context)
{
    if (!options.inference.shapes.empty())
        throw Failure("--shapes: the shapes of safety engines are fixed");
    for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
        Binding b;
        b.name = engine.getIOTensorName(i);
        char const* const name = b.name.c_str();
        b.input = engine.getTensorIOMode(name) == nvinfer1::TensorIOMode::kINPUT;
        b.type = engine.getTensorDataType(name);
        b.layout.dims = engine.getTensorShape(name);
        b.layout.linear = engine.getTensorFormat(name) == nvinfer1::TensorFormat::kLINEAR;
        if (!b.layout.linear)
            setVectors(b.layout, engine, context, name);
        allocate(b);
        bindings_.push_back(std::move(b));
    }
    checkInputFiles(options, bindings_, "engine");
    std::vector<size_t> const match = matchInputs(options, recorded);
    size_t input = 0;
    for (Binding& b : bindings_) {
        if (b.input) {
            fillInput(log, b, options, match.empty() ? nullptr : &recorded[match[input]], input, firstStream);
            ++input;
        } else if (firstStream) {
            log.info("Using random values for output " + b.name);
        }
        if (firstStream)
            announceBinding(log, b, 0);
        if (!(b.input ? context.setInputTensorAddress(b.name.c_str(), b.device.data())
                      : context.setOutputTensorAddress(b.name.c_str(), b.device.data())))
            throw LibraryFailure("setting the address of '" + b.name + "' failed");
    }
}

void Bindings::createImplicit(Options const& options)
{
    if (!options.inference.shapes.empty())
        throw Failure("--shapes: this engine has an implicit batch dimension; use --batch");
    if (batch_ > engine_->getMaxBatchSize())
        throw Failure(
            fmt::format("--batch={} is above the engine's maximum of {}", batch_, engine_->getMaxBatchSize()));
    addresses_.resize(static_cast<size_t>(engine_->getNbBindings()));
    for (int32_t i = 0; i < engine_->getNbBindings(); ++i) {
        Binding binding;
        binding.name = engine_->getBindingName(i);
        binding.index = i;
        binding.input = engine_->bindingIsInput(i);
        binding.type = engine_->getBindingDataType(i);
        Layout& layout = binding.layout;
        layout.dims = engine_->getBindingDimensions(i);
        layout.batch = batch_;
        layout.linear = engine_->getBindingFormat(i) == nvinfer1::TensorFormat::kLINEAR;
        if (!layout.linear) {
            layout.strides = context_->getStrides(i);
            layout.vectorDim = engine_->getBindingVectorizedDim(i);
            layout.components = std::max(engine_->getBindingComponentsPerElement(i), 1);
            layout.batchStride = layout.elements() / batch_;
        }
        bindings_.push_back(std::move(binding));
    }
}

void Bindings::createExplicit()
{
    for (int32_t i = 0; i < engine_->getNbIOTensors(); ++i) {
        Binding binding;
        binding.name = engine_->getIOTensorName(i);
        char const* name = binding.name.c_str();
        binding.input = engine_->getTensorIOMode(name) == nvinfer1::TensorIOMode::kINPUT;
        binding.type = engine_->getTensorDataType(name);
        binding.onHost = engine_->getTensorLocation(name) == nvinfer1::TensorLocation::kHOST;
        bindings_.push_back(std::move(binding));
    }
}

std::vector<size_t> Bindings::matchInputs(Options const& options, std::vector<RecordedTensor> const& recorded) const
{
    if (recorded.empty())
        return {};
    std::vector<std::string> names;
    for (Binding const& b : bindings_)
        if (b.input)
            names.push_back(b.name);
    return matchRecorded(recorded, names, options.inference.inputFolder);
}

void Bindings::setInputShapes(Log& log, Options const& options, std::vector<RecordedTensor> const& recorded)
{
    std::vector<size_t> const match = matchInputs(options, recorded);
    auto const& given = options.inference.shapes;
    for (auto const& [name, shape] : given) {
        auto const it = std::find_if(bindings_.begin(), bindings_.end(),
                                     [&, &name = name](Binding const& b) { return b.input && b.name == name; });
        if (it == bindings_.end())
            throw Failure("--shapes: the engine has no input '" + name + "'");
    }
    size_t input = 0;
    for (Binding& b : bindings_) {
        if (!b.input)
            continue;
        RecordedTensor const* file = match.empty() ? nullptr : &recorded[match[input]];
        ++input;
        Dims dims = engine_->getTensorShape(b.name.c_str());
        auto const it = given.find(b.name);
        // For a shape tensor the numbers are its values, which fillInputs() writes.
        if (engine_->isShapeInferenceIO(b.name.c_str()) && b.onHost) {
            b.layout.dims = dims;
            if (hasDynamicDim(dims)) // a vector of unknown length
                b.layout.dims = dimsOf({static_cast<int32_t>(it != given.end() ? it->second.size()
                                                             : file            ? file->count()
                                                                               : 1)},
                                       b.name);
        } else if (it != given.end()) {
            b.layout.dims = dimsOf(it->second, "--shapes for '" + b.name + "'");
            if (options.system.kvCapacity > 0 &&
                b.layout.dims.nbDims == dims.nbDims) // rows of a cache in the model are others
                for (int32_t i = 0; i < dims.nbDims; ++i)
                    b.layout.dims.d[i] = dims.d[i] >= 0 ? dims.d[i] : b.layout.dims.d[i];
            else if (!hasDynamicDim(dims) && dimsText(dims) != shapeText(it->second))
                throw Failure("--shapes: input '" + b.name + "' is static with shape " + dimsText(dims) + ", not " +
                              shapeText(it->second));
        } else if (!hasDynamicDim(dims)) {
            b.layout.dims = dims;
            continue;
        } else if (file) {
            Shape shape;
            for (int64_t const d : file->dims)
                shape.push_back(static_cast<int32_t>(std::min<int64_t>(d, std::numeric_limits<int32_t>::max())));
            b.layout.dims = dimsOf(shape, "input file for '" + b.name + "'");
        } else {
            // The shape that the profile was optimized for, else 1.
            Dims const opt = engine_->getProfileShape(b.name.c_str(), context_->getOptimizationProfile(),
                                                      nvinfer1::OptProfileSelector::kOPT);
            for (int32_t i = 0; i < dims.nbDims; ++i)
                if (dims.d[i] < 0)
                    dims.d[i] = opt.nbDims == dims.nbDims && opt.d[i] >= 0 ? opt.d[i] : 1;
            b.layout.dims = dims;
            log.warning("Input '" + b.name + "' is dynamic and no shape was given: using " + dimsText(dims) +
                        "; --shapes sets another");
        }
        if (!context_->setInputShape(b.name.c_str(), b.layout.dims))
            throw LibraryFailure("shape " + dimsText(b.layout.dims) + " is not allowed for input '" + b.name + "'");
    }
}

void Bindings::fillInputs(Log& log, Options const& options, std::vector<RecordedTensor> const& recorded, bool announce)
{
    checkInputFiles(options, bindings_, "engine");
    std::vector<size_t> const match = matchInputs(options, recorded);
    size_t input = 0;
    for (Binding& b : bindings_) {
        if (!b.input)
            continue;
        if (batch_ == 0 && !b.onHost) {
            Layout& layout = b.layout;
            layout.linear = engine_->getTensorFormat(b.name.c_str()) == nvinfer1::TensorFormat::kLINEAR;
            if (!layout.linear)
                setVectors(layout, *engine_, *context_, b.name.c_str());
        }
        allocate(b);
        fillInput(log, b, options, match.empty() ? nullptr : &recorded[match[input]], input, announce);
        ++input;
        if (announce)
            announceBinding(log, b, batch_);
        if (batch_ > 0)
            addresses_[static_cast<size_t>(b.index)] = b.device.data();
        else if (!context_->setInputTensorAddress(b.name.c_str(),
                                                  b.onHost ? static_cast<void*>(b.host.data()) : b.device.data()))
            throw Failure("the library refuses the address of input '" + b.name + "'");
    }
}

void Bindings::createOutputs(Log& log, bool announce)
{
    if (batch_ == 0) {
        char const* missing = nullptr;
        int32_t const unresolved = context_->inferShapes(1, &missing);
        if (unresolved != 0)
            throw Failure("output shapes cannot be computed" +
                          (unresolved > 0 && missing ? ": input '" + std::string(missing) + "' has no shape or value"
                                                     : std::string()));
    }
    for (Binding& b : bindings_) {
        if (b.input)
            continue;
        if (batch_ > 0) {
            allocate(b);
            addresses_[static_cast<size_t>(b.index)] = b.device.data();
        } else {
            char const* name = b.name.c_str();
            Layout& layout = b.layout;
            layout.dims = context_->getTensorShape(name);
            layout.linear = b.onHost || engine_->getTensorFormat(name) == nvinfer1::TensorFormat::kLINEAR;
            bool good = false;
            if (layout.dims.nbDims < 0 || hasDynamicDim(layout.dims)) {
                if (!layout.linear)
                    throw Failure("output '" + b.name + "': an output of data-dependent size needs the format chw");
                b.growing = std::make_unique<GrowingOutput>();
                good = context_->setOutputAllocator(name, b.growing.get());
            } else {
                if (!layout.linear)
                    setVectors(layout, *engine_, *context_, name);
                allocate(b);
                good = context_->setTensorAddress(name, b.onHost ? static_cast<void*>(b.host.data()) : b.device.data());
            }
            if (!good)
                throw Failure("the library refuses the memory of output '" + b.name + "'");
        }
        if (announce) {
            log.info("Using random values for output " + b.name);
            announceBinding(log, b, batch_);
        }
    }
}

void Bindings::copyInputs(void* stream)
{
    for (Binding& b : bindings_)
        if (b.input && !b.onHost)
            copyToDevice(b.device.data(), b.host.data(), b.host.size(), stream);
}

void Bindings::copyOutputs(void* stream)
{
    for (Binding& b : bindings_) {
        if (b.input || b.onHost)
            continue;
        DeviceBuffer const* from = &b.device;
        if (b.growing) {
            b.layout.dims = b.growing->dims();
            from = &b.growing->buffer();
            if (b.host.size() != b.sizeBytes())
                b.host = HostBuffer(b.sizeBytes());
            if (b.host.size() > from->size())
                throw Failure(fmt::format("output '{}': the library announced shape {} but asked for {} bytes only",
                                          b.name, dimsText(b.layout.dims), from->size()));
        }
        copyFromDevice(b.host.data(), from->data(), b.host.size(), stream);
    }
}

bool Bindings::hasGrowingOutputs() const
{
    return std::any_of(bindings_.begin(), bindings_.end(), [](Binding const& b) { return b.growing != nullptr; });
}

bool Bindings::enqueue(void* stream)
{
    if (safe_)
        return safe_->enqueueV3(static_cast<cudaStream_t>(stream));
    if (batch_ > 0)
        return context_->enqueue(batch_, addresses_.data(), static_cast<cudaStream_t>(stream), nullptr);
    return context_->enqueueV3(static_cast<cudaStream_t>(stream));
}

} // namespace tw::trtexec
