// SPDX-License-Identifier: Apache-2.0
// A second engine of the same model, in FP32, run on the inputs of the first.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "build.h"
#include "infer.h"

namespace tw::trtexec {

// The inputs of a run as tensors that another engine can be given. Failure for INT8 inputs: only their range would say what
// numbers they are.
std::vector<RecordedTensor> inputsOf(Bindings const& bindings);
// An output's elements in rows.
RecordedTensor valuesOf(Binding const& binding);

class ReferenceRun
{
public:
    // `marksAll`: every tensor is an output.
    ReferenceRun(Log& log, LibraryLogger& logger, Options const& options, std::vector<RecordedTensor> inputs,
                 bool marksAll);

    // Null: no input or output has this name.
    Binding const* find(std::string const& tensor) const;
    Bindings const& bindings() const { return inference_->outputs(); }
    // Names of tensors that Q/DQ pairs make: what they stand for.
    std::map<std::string, std::string> const& quantized() const { return quantized_; }
    // The model's layers, Q/DQ pairs too, and by tensor the one that makes it.
    std::set<std::string> const& layers() const { return layers_; }
    std::map<std::string, std::string> const& producers() const { return producers_; }

private:
    Options options_;
    Workspace work_;
    std::unique_ptr<Inference> inference_;
    std::map<std::string, Binding const*> tensors_;
    std::map<std::string, std::string> quantized_;
    std::set<std::string> layers_;
    std::map<std::string, std::string> producers_;
};

// One query and no lines about it.
Options oneQuery(Options const& options);

// While it lives, only warnings and errors are shown.
class Quiet
{
public:
    Quiet(Log& log, Options const& options) : log_(log), isVerbose_(options.reporting.verbose)
    {
        if (!isVerbose_)
            log_.setThreshold(Level::kWarning);
    }
    ~Quiet()
    {
        if (!isVerbose_)
            log_.setThreshold(Level::kInfo);
    }
    Quiet(Quiet const&) = delete;
    Quiet& operator=(Quiet const&) = delete;

private:
    Log& log_;
    bool isVerbose_;
};

} // namespace tw::trtexec
