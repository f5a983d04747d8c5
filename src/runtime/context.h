// SPDX-License-Identifier: Apache-2.0
// One execution context: input shapes, what follows from them, and the memory to run in. Not thread safe by itself;
// contexts of one engine run in parallel.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace tw::runtime {

class Context
{
public:
    explicit Context(std::shared_ptr<Engine const> engine);

    Engine const& engine() const { return *engine_; }
    int profile() const { return profile_; }
    // What kernels want to have of their own in this context (ops::PerContext). Once, before the first instance.
    Result<void> makeStates();
    // Forgets the shapes and contents of inputs; static ones, and those of which the profile allows one, are set at
    // once. -1: no profile.
    void setProfile(int profile);

    // Positions are those of graph().inputs and outputs.
    Result<void> setInputShape(int input, Extents const& dims);
    // Elements of a shape tensor (copied). Its shape must be set.
    Result<void> setInputContents(int input, TensorRef const& elements);
    void forgetInputContents(int input) { inputs_[size_t(input)].contents.reset(); }
    bool hasInputShape(int input) const { return inputs_[size_t(input)].hasShape; }
    bool hasInputContents(int input) const { return inputs_[size_t(input)].contents != nullptr; }
    Extents const& inputShape(int input) const { return inputs_[size_t(input)].dims; }
    Tensor const* inputContents(int input) const { return inputs_[size_t(input)].contents.get(); }
    bool needsContents(int input) const;

    // Everything that follows from the inputs. Cached by shapes and contents; an error names the input that is missing.
    // They are of the engine's generation of now, and keep it.
    Result<std::shared_ptr<Instance>> instance();

    uint64_t* randomState() { return &randomState_; }

private:
    using States = std::map<ops::Kernel const*, std::shared_ptr<ops::Kept>>;
    // `had`: of the generation before.
    Result<void> makeStates(Generation const& now, States const& had);
    Result<void> makeStates(LoadedBlock const& block, States const& had);
    void lendStates(Instance& instance) const;
    struct Input
    {
        Extents dims;
        bool hasShape = false;
        std::shared_ptr<Tensor> contents;
    };
    std::string key() const;
    // Forgets what belongs to weights that a refit has replaced.
    Result<void> follow();
    std::shared_ptr<Engine const> engine_;
    std::shared_ptr<Generation const> generation_; // of what is cached
    int profile_ = -1;
    std::vector<Input> inputs_;
    // Most recent first.
    std::list<std::pair<std::string, std::shared_ptr<Instance>>> cache_;
    uint64_t randomState_ = 0;
    std::shared_ptr<void> sharedByStates_;
    States states_;
};

} // namespace tw::runtime
