// SPDX-License-Identifier: Apache-2.0
// The network that a model is imported into: what its nodes share.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "importers/common/values.h"

namespace tw::importers {

// The API keeps names of up to 4096 bytes with the terminator, and a model's names may hold a zero byte.
std::string cleanName(std::string const& name);

// Buffers that live as long as the parser: layers keep pointers to them until the build ends.
class Memory
{
public:
    void* allocate(int64_t sizeBytes); // zeroed; nullptr when there is none
    void keep(std::shared_ptr<void const> other) { kept_.push_back(std::move(other)); } // as long as the buffers

private:
    struct Free
    {
        void operator()(void* p) const;
    };
    std::vector<std::unique_ptr<void, Free>> buffers_;
    std::vector<std::shared_ptr<void const>> kept_;
};

// What the network says of a layer that it refuses, for the importer's own error: it goes to loggers and error recorders only.
// Listens to the network's errors as long as it lives, and hands them on to the recorder that was there.
class Reasons final : public nvinfer1::IErrorRecorder
{
public:
    explicit Reasons(nvinfer1::INetworkDefinition& network) : network_(network), next_(network.getErrorRecorder())
    {
        if (next_)
            next_->incRefCount(); // the network's own reference goes meanwhile
        network_.setErrorRecorder(this);
    }
    Reasons(Reasons const&) = delete;
    Reasons& operator=(Reasons const&) = delete;
    ~Reasons() override
    {
        network_.setErrorRecorder(next_);
        if (next_)
            next_->decRefCount();
    }
    // Of the last error, as far as recorders are told; empty: there was none.
    std::string const& last() const { return last_; }

    int32_t getNbErrors() const noexcept override { return next_ ? next_->getNbErrors() : 0; }
    nvinfer1::ErrorCode getErrorCode(int32_t index) const noexcept override
    {
        return next_ ? next_->getErrorCode(index) : nvinfer1::ErrorCode::kSUCCESS;
    }
    ErrorDesc getErrorDesc(int32_t index) const noexcept override { return next_ ? next_->getErrorDesc(index) : ""; }
    bool hasOverflowed() const noexcept override { return next_ && next_->hasOverflowed(); }
    void clear() noexcept override
    {
        if (next_)
            next_->clear();
    }
    bool reportError(nvinfer1::ErrorCode code, ErrorDesc description) noexcept override
    {
        try {
            last_ = description ? description : "";
            if (last_.size() + kMostBytesOfACharacter > kMAX_DESC_LENGTH)
                last_ += "... (the logger has all of it)";
        } catch (...) { // no memory for it: the loggers have it
            last_.clear();
        }
        return next_ ? next_->reportError(code, description) : true;
    }
    RefCount incRefCount() noexcept override { return ++references_; }
    RefCount decRefCount() noexcept override { return --references_; }

private:
    static constexpr size_t kMostBytesOfACharacter = 4; // none is cut in two

    nvinfer1::INetworkDefinition& network_;
    nvinfer1::IErrorRecorder* const next_;
    std::atomic<RefCount> references_{0};
    std::string last_;
};

// Weights of a layer that are a part of an initializer have its name, this mark, where the part begins and how many elements
// there are in all: "W\x1f" "128/512". A refitter takes the parts together (api/engine/refitter.cpp).
inline constexpr char const kPartMark[] = "\x1f";

class ImportedNetwork
{
public:
    // parser: stands in front of what is logged. `memory` holds the weights until the network's build.
    ImportedNetwork(nvinfer1::INetworkDefinition& network, nvinfer1::ILogger& logger, Memory& memory,
                    char const* parser)
        : network_(network), logger_(logger), memory_(memory), parser_(parser)
    {}

    nvinfer1::INetworkDefinition& network() const { return network_; }
    Memory& memory() const { return memory_; }
    // What the network has said last of something that it refused; empty: nothing.
    std::string const& reason() const { return reasons_.last(); }
    void log(nvinfer1::ILogger::Severity severity, std::string const& message) const;
    // The model's tensors may be quantized with any zero points (onnx/importer.h).
    void takeZeroPoints(bool take) { takesZeroPoints_ = take; }
    bool takesZeroPoints() const { return takesZeroPoints_; }
    std::string uniqueLayerName(std::string const& wanted);
    // A few bytes of an untrusted model can ask for any amount of memory: false when its computed constants would need more
    // than this.
    bool takeComputed(int64_t sizeBytes)
    {
        if (sizeBytes > mostComputedBytes_ - computedBytes_)
            return false;
        computedBytes_ += sizeBytes;
        return true;
    }
    int64_t mostComputedBytes() const { return mostComputedBytes_; }
    // For weights that layers take in another order.
    void allowComputed(int64_t moreBytes) { mostComputedBytes_ += moreBytes; }
    // Weights of layers that are to have an initializer's name, with `suffix`; a name stands for the first weights that have it.
    void nameWeights(nvinfer1::Weights const& weights, std::string const& name, std::string const& suffix);
    // The import stands on elements of this initializer: no weights have its name.
    void decideBy(std::string const& name) { decided_.insert(name); }
    // When all nodes have said which initializers they stand on.
    void setWeightsNames();

private:
    nvinfer1::INetworkDefinition& network_;
    Reasons reasons_{network_};
    nvinfer1::ILogger& logger_;
    Memory& memory_;
    char const* parser_;
    bool takesZeroPoints_ = false;
    int64_t computedBytes_ = 0, mostComputedBytes_ = int64_t(1) << 30;
    std::unordered_set<std::string> layerNames_, decided_;
    struct NamedWeights
    {
        nvinfer1::Weights weights;
        std::string name, suffix;
    };
    std::vector<NamedWeights> weightsNames_;
    std::unordered_map<std::string, int> nextSuffix_;
};

} // namespace tw::importers
