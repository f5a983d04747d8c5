// SPDX-License-Identifier: Apache-2.0
#include "runtime/alias.h"

#include <algorithm>

#include "base/format.h"
#include "ir/op_def.h"

namespace tw::runtime {

namespace {

class Aliases
{
public:
    explicit Aliases(Instance& inst) : inst_(inst), block_(*inst.block), g_(*inst.block->graph)
    {
        for (LoadedStep const& step : block_.steps)
            if (step.kernel)
                alignment_ = std::max(alignment_, step.kernel->alignment());
    }

    void run()
    {
        for (size_t i = 0; i < block_.steps.size(); ++i)
            if (auto list = aliasesOf(i); !list.empty() && list[0].outputInInput)
                makeView(i, list[0]);
        for (size_t i = block_.steps.size(); i-- > 0;)
            if (auto list = aliasesOf(i); !list.empty() && !list[0].outputInInput)
                makeJoin(i, list);
        setStrides();
    }

private:
    ValueState& state(int v) { return inst_.values[size_t(v)]; }
    int indexOf(ir::Value const* v) const { return block_.indexOf(v); }
    ir::Value const& value(int v) const { return *block_.values[size_t(v)]; }
    // Channels of a pixel together, as dimension 1.
    bool isPixels(int v) const
    {
        Format const f = value(v).format;
        return f == Format::kChannelsLast || isPixelRows(f, value(v).rank());
    }
    // Elements along which parts follow each other: channels of a pixel, or all of a linear tensor.
    int64_t extentOf(int v)
    {
        Extents const& e = state(v).dims;
        return isPixels(v) ? e[1] : e.volume();
    }

    std::vector<ir::Alias> aliasesOf(size_t index)
    {
        ir::Node const& node = *block_.steps[index].node;
        if (!node.op->aliases || inst_.skipped[index] || node.outputs.size() != 1)
            return {};
        std::vector<TensorRef> in;
        for (ir::Value const* v : node.inputs) {
            TensorRef r;
            if (v) {
                int const i = indexOf(v);
                ValueState const& s = state(i);
                if (!s.exact)
                    return {};
                r = inst_.shapeOf(i);
                if (v->isConstant())
                    r.data = const_cast<void*>(v->constant->data->data());
                else if (s.hasContents)
                    r.data = s.contents.data();
            }
            in.push_back(r);
        }
        int const out = indexOf(node.outputs[0]);
        if (!state(out).exact)
            return {};
        TensorRef const y[] = {inst_.shapeOf(out)};
        return node.op->aliases(node, in, std::span(y, 1));
    }

    void makeView(size_t index, ir::Alias const& a)
    {
        ir::Node const& node = *block_.steps[index].node;
        int const y = indexOf(node.outputs[0]), x = indexOf(node.inputs[size_t(a.input)]);
        ValueState& s = state(x);
        if (s.hasContents || a.offset * sizeOf(value(y).type) % alignment_ != 0)
            return;
        // Pixels that step as those of a wider tensor are no rows of a linear one, and parts of pixels step as their root does, which
        // must lie by pixels then.
        int const root = storageOf(inst_, x).root;
        bool const isPart = isPixels(x) && (!isPixels(root) || state(root).dims[1] != state(x).dims[1]);
        if (isPart && state(x).dims[0] * state(x).dims.volume(2, state(x).dims.rank) > 1 && !isPixels(y))
            return;
        if (isPixels(x) && isPixels(y) && !isPixels(root) && state(x).dims[1] != state(y).dims[1])
            return;
        if (g_.isOutput(node.outputs[0])) {
            // The caller's memory holds the view; what it is a view of is written there, if that is all of it.
            bool const whole =
                isPixels(x) == isPixels(y) && inst_.shapeOf(x).sizeBytes() == inst_.shapeOf(y).sizeBytes();
            if (!whole || !value(x).producer || value(x).host || s.external || s.root != x || g_.isOutput(&value(x)))
                return;
            s.root = y;
            s.rootOffset = 0;
        } else {
            state(y).root = x;
            state(y).rootOffset = a.offset * sizeOf(value(y).type);
        }
        inst_.skipped[index] = true;
    }

    // Where one input of a join lies now, and where it should.
    struct Part
    {
        int value, root;
        int64_t at;     // of the value in the output, in elements
        int64_t inRoot; // of the value in its root
        int64_t rootAt() const { return at - inRoot; }
    };

    std::vector<Part> partsOf(ir::Node const& node, std::vector<ir::Alias> const& list)
    {
        std::vector<Part> parts;
        for (ir::Alias const& a : list) {
            int const v = indexOf(node.inputs[size_t(a.input)]);
            Storage const s = storageOf(inst_, v);
            parts.push_back(Part{v, s.root, a.offset, s.offset / sizeOf(value(v).type)});
        }
        return parts;
    }

    // Whether the pixels are read as a linear tensor too, which they are not any more as parts of wider ones.
    bool hasLinearView(int root) const
    {
        for (int v = 0; v < int(inst_.values.size()); ++v)
            if (v != root && !isPixels(v) && storageOf(inst_, v).root == root)
                return true;
        return false;
    }

    // Whether the whole root of a part can move into the output: what of it the join does not take would lie on
    // another part.
    bool canMove(Part const& p, std::vector<Part> const& parts, int y)
    {
        ValueState const& s = state(p.root);
        ir::Value const& v = value(p.root);
        if (p.root == y || !v.producer || s.external || s.hasContents || !s.exact || g_.isOutput(&v) ||
            v.format != value(y).format || v.type != value(y).type)
            return false;
        if (v.format != Format::kLinear && !isPixels(y))
            return false;
        int64_t const line = isPixelVectors(v.format) ? vectorOf(v.format) : kCacheLine / sizeOf(v.type);
        if (isPixels(y) && (s.dims[1] % line != 0 || p.rootAt() % line != 0 || s.dims[0] != state(y).dims[0] ||
                            s.dims.volume(2, s.dims.rank) != state(y).dims.volume(2, state(y).dims.rank)))
            return false;
        if (isPixels(y) && s.dims[0] * s.dims.volume(2, s.dims.rank) > 1 && hasLinearView(p.root))
            return false;
        if (p.rootAt() * sizeOf(v.type) % alignment_ != 0)
            return false;
        int64_t const begin = p.rootAt(), end = begin + extentOf(p.root);
        if (begin < 0 || end > extentOf(y))
            return false;
        return std::ranges::all_of(parts, [&](Part const& q) {
            bool const apart = q.at >= end || q.at + extentOf(q.value) <= begin;
            return apart || (q.root == p.root && q.rootAt() == begin);
        });
    }

    void makeJoin(size_t index, std::vector<ir::Alias> const& list)
    {
        ir::Node const& node = *block_.steps[index].node;
        int const y = indexOf(node.outputs[0]);
        ValueState& whole = state(y);
        std::vector<Part> const parts = partsOf(node, list);
        // All of it is a part of something already: the output is one too.
        bool const inPlace = std::ranges::all_of(parts, [&](Part const& p) {
            return p.root == parts[0].root && p.rootAt() == parts[0].rootAt() && p.rootAt() <= 0;
        });
        int const root = parts[0].root;
        if (inPlace && list.size() == node.inputs.size() && whole.root == y && !whole.external &&
            !g_.isOutput(node.outputs[0]) && root != y && !state(root).external &&
            value(root).format == value(y).format && value(root).type == value(y).type && state(root).exact &&
            -parts[0].rootAt() + extentOf(y) <= extentOf(root)) {
            whole.root = root;
            whole.rootOffset = -parts[0].rootAt() * sizeOf(value(y).type);
            inst_.skipped[index] = true;
            return;
        }
        // A value that is joined twice has one place: the first.
        std::vector<bool> moves;
        for (size_t i = 0; i < parts.size(); ++i)
            moves.push_back(canMove(parts[i], parts, y) &&
                            std::all_of(parts.begin(), parts.begin() + int64_t(i), [&](Part const& q) {
                                return q.root != parts[i].root || q.rootAt() == parts[i].rootAt();
                            }));
        bool const all = !contains(moves, false);
        if (!all && !isPixels(y))
            return;
        for (size_t i = 0; i < parts.size(); ++i) {
            if (!moves[i])
                continue;
            ValueState& s = state(parts[i].root);
            s.root = y;
            s.rootOffset = parts[i].rootAt() * sizeOf(value(y).type);
        }
        inst_.skipped[index] = all;
    }

    // Parts of channels-last tensors step as their root does.
    void setStrides()
    {
        for (int v = 0; v < int(inst_.values.size()); ++v) {
            int const root = storageOf(inst_, v).root;
            if (root != v && isPixels(v) && isPixels(root) && state(v).dims[1] != state(root).dims[1])
                state(v).stride = pixelStrideOf(value(root).format, value(root).type, state(root).dims[1]);
        }
    }

    Instance& inst_;
    LoadedBlock const& block_;
    ir::Graph const& g_;
    int64_t alignment_ = 1; // bytes, that some kernel wants
};

} // namespace

Storage storageOf(Instance const& inst, int value)
{
    Storage s{value, 0};
    while (inst.values[size_t(s.root)].root != s.root) {
        s.offset += inst.values[size_t(s.root)].rootOffset;
        s.root = inst.values[size_t(s.root)].root;
    }
    return s;
}

void realizeAliases(Instance& inst)
{
    Aliases(inst).run();
}

} // namespace tw::runtime
