// SPDX-License-Identifier: Apache-2.0
// y0, y1, ... = f(x0, x1, ...): a layer that the user wrote. Types and shapes of the outputs were asked of it when the
// network was defined and stand here, so that graphs are checked and shapes computed without it; what runs is an object
// beside the attributes, which the API layer makes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::plugin {

// The user's object, as tactics see it.
class Object
{
public:
    virtual ~Object() = default;
    virtual bool isOnHost() const = 0; // it reads and writes host memory
    // That it works in.
    virtual std::vector<Formats> formats(Problem const& problem) const = 0;
    virtual Result<std::unique_ptr<Kernel>> load(Problem const& problem) const = 0;
};

// Published numbers of the interfaces.
enum class Interface : int32_t
{
    kV2 = 0,
    kExt = 1,
    kIOExt = 2,
    kDynamicExt = 3,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    ir::OpaqueBytes state; // key of its creator, and what it serialized
    Interface interface = Interface::kDynamicExt;
    int64_t instance = 0;                         // of the network: equal layers are not one
    std::vector<int64_t> inputTypes, outputTypes; // DataTypes
    std::vector<int64_t> inputRanks;
    // "[x0.0|(2*x1.1)];[]": a shape for each output; xI.D is dimension D of input I.
    std::string shapes;
    bool dropsBatch = false;          // it sees tensors without their first dimension
    std::vector<int64_t> broadcast;   // of inputs, then outputs: one for the whole batch
    std::vector<int64_t> least, most; // dimensions of inputs, then outputs, in all profiles
    int64_t workspaceBytes = 0;
    std::vector<int64_t> formats; // of inputs, then outputs, that it was configured for; none: all linear

    // No fields. The object stands for the same as they do; of inputs, then outputs: what one step of their integers is
    // worth, which a plan has by values (plan::Contents::scales).
    std::shared_ptr<Object const> object;
    std::vector<float> scales;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "plugin", state); // and 2, 3, 4
        v.field(5, "interface", interface);
        v.field(6, "instance", instance);
        v.field(7, "input_types", inputTypes);
        v.field(8, "output_types", outputTypes);
        v.field(9, "input_ranks", inputRanks);
        v.field(10, "shapes", shapes);
        v.field(11, "drops_batch", dropsBatch);
        v.field(12, "broadcast", broadcast);
        v.field(13, "least", least);
        v.field(14, "most", most);
        v.field(15, "workspace_bytes", workspaceBytes);
        v.field(16, "formats", formats);
    }
    bool isBroadcast(size_t tensor) const { return tensor < broadcast.size() && broadcast[tensor] != 0; }
};

constexpr int64_t kMaxTensors = 1024; // inputs and outputs of a node
// The name that stands in Attrs::shapes for a dimension of an input.
std::string symbolOf(size_t input, size_t dimension);
// Attrs::shapes of these shapes.
std::string textOf(std::vector<ir::Shape> const& shapes);
// "layer 'a' (plugin 'Clip_TRT' version '1')"
std::string describe(ir::Node const& node);

} // namespace tw::ops::plugin
