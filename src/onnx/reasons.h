// SPDX-License-Identifier: Apache-2.0
// What the network says of a layer that it refuses, for IParser::getError(): it goes to loggers and error recorders only.
#pragma once

#include <atomic>
#include <string>

#include "NvInfer.h"

namespace tw::onnx {

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

} // namespace tw::onnx
