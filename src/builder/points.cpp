// SPDX-License-Identifier: Apache-2.0
#include "builder/points.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "runtime/profile_shapes.h"

namespace tw::builder {

namespace {

// Of a region's inputs and outputs at its largest checked size, all profiles together, and of what a size between
// takes of that.
constexpr int64_t kMostBytes = 64 << 20;
constexpr int64_t kShareBetween = 8;
constexpr int kHalvings = 8; // of the way from minimum to maximum: 1/2, 1/4, ...

struct Ends
{
    int64_t lo = 0, hi = 0;
};

// A size on the way from minimum to maximum.
struct Step
{
    double part = 0;
    bool isOdd = false; // where that is possible
};

int64_t between(Ends e, Step step)
{
    int64_t const v = e.lo + std::llround(step.part * double(e.hi - e.lo));
    if (!step.isOdd || v % 2 != 0 || e.lo == e.hi)
        return v;
    return v < e.hi ? v + 1 : v - 1 >= e.lo ? v - 1 : v;
}

// The inputs of the network at sizes between the ends of a profile. A symbol has one value wherever it stands.
class Between
{
public:
    Between(plan::Contents const& contents, size_t profile) : graph_(*contents.graph)
    {
        for (ir::Value const* v : graph_.inputs) {
            auto const& inputs = contents.profiles[profile].inputs;
            auto const at = inputs.find(v->name);
            ranges_.push_back(at == inputs.end() ? nullptr : &at->second);
            plan::ProfileRange const* r = ranges_.back();
            for (int d = 0; r && r->hasShape && d < v->rank(); ++d)
                narrow(v->shape[size_t(d)], {r->min[d], r->max[d]});
            for (size_t k = 0; r && v->content && k < v->content->size() && k < r->optValues.size(); ++k)
                narrow((*v->content)[k], endsOf(*r, k));
        }
    }

    std::vector<runtime::InputState> at(Step step, std::vector<Tensor>& storage) const
    {
        ir::Bindings bindings;
        for (auto const& [name, ends] : symbols_)
            bindings[name] = between(ends, step);
        auto valueOf = [&](ir::Dim const& d, Ends ends) {
            auto const known = d.eval(bindings);
            return known.ok() ? *known : between(ends, step);
        };
        std::vector<runtime::InputState> states;
        for (size_t i = 0; i < graph_.inputs.size(); ++i) {
            ir::Value const& v = *graph_.inputs[i];
            plan::ProfileRange const* r = ranges_[i];
            runtime::InputState s;
            for (int d = 0; d < v.rank(); ++d)
                s.dims.push(r && r->hasShape ? valueOf(v.shape[size_t(d)], {r->min[d], r->max[d]})
                                             : v.shape[size_t(d)].value());
            if (r && !r->optValues.empty() && int64_t(r->optValues.size()) == s.dims.volume()) {
                storage.emplace_back(v.type, s.dims);
                s.contents = storage.back().ref();
                for (size_t k = 0; k < r->optValues.size(); ++k)
                    s.contents.setInt(int64_t(k), v.content && k < v.content->size()
                                                      ? valueOf((*v.content)[k], endsOf(*r, k))
                                                      : between(endsOf(*r, k), step));
            }
            states.push_back(std::move(s));
        }
        return states;
    }

private:
    static Ends endsOf(plan::ProfileRange const& r, size_t k)
    {
        return {std::min(r.minValues[k], r.maxValues[k]), std::max(r.minValues[k], r.maxValues[k])};
    }
    void narrow(ir::Dim const& d, Ends ends)
    {
        std::vector<std::string> names;
        d.collectSymbols(names);
        if (names.size() != 1 || !(d == ir::Dim::symbol(names[0])))
            return;
        Ends& known = symbols_.try_emplace(names[0], ends).first->second;
        known = {std::max(known.lo, ends.lo), std::min(known.hi, ends.hi)};
    }

    ir::Graph const& graph_;
    std::vector<plan::ProfileRange const*> ranges_; // of each input; null: none
    std::map<std::string, Ends> symbols_;
};

// What the instance, or that of a region in it, knows of a value; null: nothing.
runtime::ValueState const* stateOf(runtime::Instance const& inst, ir::Value const* v)
{
    if (auto const at = inst.block->valueIndex.find(v); at != inst.block->valueIndex.end())
        return &inst.values[size_t(at->second)];
    for (auto const& step : inst.regions)
        for (auto const& region : step)
            if (auto const* state = region ? stateOf(*region, v) : nullptr)
                return state;
    return nullptr;
}

// The point and what its tensors take; none where the sizes are not known.
struct Measured
{
    tune::Point point;
    int64_t bytes = 0;
};
std::optional<Measured> measure(runtime::Instance const& inst, ops::Problem const& p, std::string const& where)
{
    Measured m;
    m.point.where = where;
    auto count = [&](ops::TensorSpec const& t, Extents const& dims) {
        m.bytes = ir::addSat(m.bytes, TensorRef{t.type, dims, nullptr}.sizeBytes());
    };
    for (size_t i = 0; i < p.inputs.size(); ++i) {
        ops::TensorSpec const& t = p.inputs[i];
        if (!t.present || t.constant) {
            m.point.inputs.push_back({t.dims, {}});
            continue;
        }
        runtime::ValueState const* s = stateOf(inst, p.node->inputs[i]);
        if (!s || !s->known || (t.contents.data && !s->hasContents))
            return std::nullopt;
        m.point.inputs.push_back({s->dims, s->hasContents ? s->contents.ref() : TensorRef{}});
        count(t, s->dims);
    }
    for (size_t i = 0; i < p.outputs.size(); ++i)
        if (runtime::ValueState const* s = stateOf(inst, p.node->outputs[i]); s && s->known)
            count(p.outputs[i], s->dims);
    return m;
}

bool isSame(TensorRef const& a, TensorRef const& b)
{
    if (!a.data || !b.data)
        return a.data == b.data;
    if (a.type != b.type || !(a.dims == b.dims))
        return false;
    for (int64_t i = 0; i < a.count(); ++i)
        if (a.get(i) != b.get(i))
            return false;
    return true;
}

bool isSame(tune::Point const& a, tune::Point const& b)
{
    return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                      [](tune::InputAt const& x, tune::InputAt const& y) {
                          return x.dims == y.dims && isSame(x.contents, y.contents);
                      });
}

bool varies(plan::Contents const& c)
{
    for (plan::Profile const& p : c.profiles)
        for (auto const& [name, r] : p.inputs)
            if (c.profiles.size() > 1 || !(r.min == r.opt) || !(r.opt == r.max) || r.minValues != r.optValues ||
                r.optValues != r.maxValues)
                return true;
    return false;
}

} // namespace

ShapePoints::ShapePoints(plan::Contents const& contents, runtime::LoadedBlock const& block, size_t wanted)
    : mostBytes_(kMostBytes / std::max<int64_t>(1, int64_t(contents.profiles.size())))
{
    for (size_t p = 0; varies(contents) && p < contents.profiles.size(); ++p) {
        if (wanted != kAllProfiles && wanted != p)
            continue;
        Profile profile;
        std::string const of =
            contents.profiles.size() > 1 ? fmt::format(" of optimization profile {}", p) : std::string();
        auto add = [&](std::vector<Size>& list, std::string const& where,
                       Result<std::vector<runtime::InputState>> const& inputs) {
            if (!inputs.ok())
                return false;
            auto at = runtime::resolve(block, *inputs);
            if (at.ok())
                list.push_back({where + of, std::move(*at)});
            return at.ok();
        };
        std::vector<Tensor> storage; // of shape tensors: instances keep copies
        using runtime::Select;
        auto end = [&](Select s) { return runtime::profileInputs(contents, p, s, storage); };
        add(profile.fixed, "at the minimum shapes", end(Select::kMin));
        if (p > 0 && wanted == kAllProfiles)
            add(profile.fixed, "at the optimum shapes", end(Select::kOpt));
        add(profile.falling, "at the maximum shapes", end(Select::kMax));
        Between const inside(contents, p);
        for (int k = 1; k <= kHalvings; ++k)
            for (bool isOdd : {true, false}) // some networks take no odd sizes
                if (add(profile.falling, "at shapes between minimum and maximum",
                        inside.at({std::ldexp(1.0, -k), isOdd}, storage)))
                    break;
        profiles_.push_back(std::move(profile));
    }
}

std::vector<tune::Point> ShapePoints::of(ops::Problem const& problem) const
{
    std::vector<tune::Point> list(1); // the optimum, as the others are compared with it
    int64_t optimumBytes = 0;
    for (ops::TensorSpec const& t : problem.inputs)
        list[0].inputs.push_back({t.dims, t.contents});
    for (auto const* specs : {&problem.inputs, &problem.outputs})
        for (ops::TensorSpec const& t : *specs)
            optimumBytes += t.present && !t.constant ? TensorRef{t.type, t.dims, nullptr}.sizeBytes() : 0;
    auto add = [&](tune::Point point) {
        if (std::ranges::none_of(list, [&](tune::Point const& p) { return isSame(p, point); }))
            list.push_back(std::move(point));
    };
    for (Profile const& profile : profiles_) {
        for (Size const& size : profile.fixed)
            if (auto m = measure(*size.at, problem, size.where); m && m->bytes <= std::max(mostBytes_, optimumBytes))
                add(std::move(m->point));
        int64_t limit = mostBytes_; // of the largest, then of the one between
        for (Size const& size : profile.falling) {
            auto m = measure(*size.at, problem, size.where);
            if (!m || m->bytes > limit)
                continue;
            add(std::move(m->point));
            if (limit < mostBytes_ || &size != &profile.falling.front())
                break;
            limit = mostBytes_ / kShareBetween;
        }
    }
    list.erase(list.begin());
    return list;
}

} // namespace tw::builder
