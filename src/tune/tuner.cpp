// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <algorithm>
#include <chrono>

#include "interp/interp.h"
#include "ir/op_def.h"
#include "ops/winograd.h"
#include "tune/check.h"
#include "tune/device_run.h"
#include "tune/timing_cache.h"

namespace tw::tune {

namespace {

struct Candidate
{
    ops::Tactic const* tactic = nullptr;
    ops::Config config;
    std::string image;
    std::unique_ptr<ops::Kernel> kernel;
    std::vector<double> ratios; // to the leader of each round
    double microseconds = 0;
};

std::string typesAndShapes(std::vector<ops::TensorSpec> const& specs)
{
    std::string s;
    for (auto const& t : specs) {
        for (int64_t i = 0; t.contents.data && i < t.contents.count(); ++i)
            s += std::to_string(t.contents.getInt(i)) + ";";
        s += t.format != Format::kLinear ? std::string(nameOf(t.format)) + ":" : "";
        s += t.present ? std::string(nameOf(t.type)) + t.dims.str() + t.maxDims.str() + (t.constant ? "c" : "") + " "
                       : "- ";
    }
    return s;
}

// Buffers of one region, the same for all candidates.
struct Buffers
{
    std::vector<Tensor> storage;
    std::vector<TensorRef> inputs, outputs;
};

Result<Buffers> makeBuffers(ops::Problem const& p)
{
    Buffers b;
    for (size_t i = 0; i < p.inputs.size(); ++i) {
        ops::TensorSpec const& spec = p.inputs[i];
        if (!spec.present) {
            b.inputs.emplace_back();
        } else if (spec.constant) {
            b.inputs.push_back(TensorRef{spec.type, spec.dims, const_cast<void*>(spec.constant->data())});
        } else if (spec.contents.data) {
            b.inputs.push_back(spec.contents);
        } else {
            b.storage.emplace_back(spec.type, spec.dims);
            if (!b.storage.back().data())
                return Error{ErrorCode::kFailedAllocation, "no memory for timing"};
            fillRandom(b.storage.back().ref(), domainOf(*p.node, int(i)), i + 1);
            b.inputs.push_back(b.storage.back().ref());
        }
    }
    TW_ASSIGN(auto shapes, interp::inferConcrete(*p.node, b.inputs));
    for (auto const& s : shapes) {
        b.storage.emplace_back(s.type, s.dims);
        if (!b.storage.back().data())
            return Error{ErrorCode::kFailedAllocation, "no memory for timing"};
        b.outputs.push_back(b.storage.back().ref());
    }
    TW_ASSIGN(b.inputs, inFormats(b.inputs, p.inputs, b.storage));
    TW_ASSIGN(b.outputs, inFormats(b.outputs, p.outputs, b.storage));
    return b;
}

double timeOnce(Candidate const& c, Buffers const& b, void* workspace, ops::Prepared const* prepared, Workers& workers)
{
    std::vector<TensorRef> outputs = b.outputs;
    uint64_t state = 1;
    ops::RunArgs args{b.inputs, outputs, workspace, &state};
    args.prepared = prepared;
    args.workers = &workers;
    auto const begin = std::chrono::steady_clock::now();
    (void)c.kernel->run(args).ok(); // checked before; a failing run cannot win
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

// Interleaved rounds; the winner has the lowest median ratio to the fastest of each round. Ties go to the earlier.
void timeAll(ops::Problem const& problem, std::vector<Candidate>& list, Buffers const& buffers, int rounds,
             Workers& workers)
{
    constexpr double kNever = 1e12; // microseconds of a candidate that cannot run
    std::vector<Tensor> workspaces;
    std::vector<std::shared_ptr<ops::Prepared const>> prepared;
    for (Candidate const& c : list) {
        workspaces.emplace_back(DataType::kInt8, Extents{c.kernel->workspaceBytes(buffers.inputs, buffers.outputs)});
        auto p = c.kernel->prepare(buffers.inputs, buffers.outputs); // as the check did: it went well there
        prepared.push_back(p.ok() ? *p : nullptr);
    }
    std::vector<std::unique_ptr<DeviceRun>> onDevice(list.size());
    for (size_t i = 0; problem.cuda && i < list.size(); ++i) {
        auto run = DeviceRun::create(problem, *list[i].kernel, buffers.inputs, buffers.outputs);
        onDevice[i] = run.ok() ? std::move(*run) : nullptr;
    }
    auto time = [&](size_t i) {
        if (!problem.cuda)
            return timeOnce(list[i], buffers, workspaces[i].data(), prepared[i].get(), workers);
        Result<double> const us = onDevice[i] ? onDevice[i]->microseconds() : Result<double>(kNever);
        return us.ok() ? *us : kNever;
    };
    std::vector<std::vector<double>> times(list.size());
    for (int r = 0; r <= rounds; ++r) { // round 0 warms up
        std::vector<double> t;
        for (size_t i = 0; i < list.size(); ++i)
            t.push_back(time(i));
        if (r == 0)
            continue;
        double const leader = std::max(*std::min_element(t.begin(), t.end()), 1e-3);
        for (size_t i = 0; i < list.size(); ++i) {
            list[i].ratios.push_back(t[i] / leader);
            times[i].push_back(t[i]);
        }
    }
    for (size_t i = 0; i < list.size(); ++i) {
        std::nth_element(times[i].begin(), times[i].begin() + rounds / 2, times[i].end());
        list[i].microseconds = times[i][size_t(rounds / 2)];
        std::nth_element(list[i].ratios.begin(), list[i].ratios.begin() + rounds / 2, list[i].ratios.end());
    }
}

constexpr double kTie = 1.02; // a later candidate must win by 2 %

std::span<ops::Tactic const* const> ownTactics(ir::Node const& node, ops::Backend backend)
{
    auto const list = backend == ops::Backend::kCuda ? node.op->cudaTactics : node.op->cpuTactics;
    return list ? list() : std::span<ops::Tactic const* const>();
}

} // namespace

std::vector<ops::Tactic const*> candidates(ir::Node const& node, Options const& options)
{
    std::vector<ops::Tactic const*> list;
    for (ops::Tactic const* t : ownTactics(node, options.backend))
        if (options.winograd || !ops::isWinograd(*t))
            list.push_back(t);
    for (ops::TacticProvider const* p : options.providers)
        p->tactics(node, options.backend, list);
    return list;
}

std::string regionKey(ops::Problem const& problem, std::string const& device)
{
    std::string key = device + "|" + problem.node->op->name + "|";
    for (auto const& f : ir::fieldsOf(*problem.node->attrs)) {
        key += f.name + "=";
        for (int64_t v : f.integers)
            key += std::to_string(v) + ",";
        for (double v : f.reals)
            key += std::to_string(v) + ",";
        key += f.text + ";";
    }
    return key + "|" + typesAndShapes(problem.inputs) + "|" + typesAndShapes(problem.outputs);
}

Result<plan::Choice> choose(ops::Problem const& problem, Options const& options)
{
    std::string refusals;
    std::string const where = "layer '" + problem.node->name + "' (" + problem.node->op->name + ")";
    auto refuse = [&](ops::Tactic const& t, std::string const& why) {
        refusals += std::string("\n  ") + t.name() + ": " + why;
        if (options.log)
            options.log->verbose(where + ": tactic " + t.name() + " is out: " + why);
    };
    auto toChoice = [](ops::Tactic const& t, ops::Config const& config, std::string image, double us) {
        return plan::Choice{t.id(), t.name(), t.version(), config, std::move(image), us};
    };
    std::vector<ops::Tactic const*> const tactics = candidates(*problem.node, options);
    std::string const key = regionKey(problem, options.device) + (options.winograd ? "" : "|no winograd");
    if (options.cache) {
        auto hit = options.cache->find(key);
        if (hit && (hit->microseconds > 0 || !options.timeAlways)) {
            for (ops::Tactic const* t : tactics) {
                if (t->id() != hit->tactic || !ops::supportsFormats(*t, problem).ok)
                    continue;
                auto image = t->build(problem, hit->config);
                if (image.ok())
                    return toChoice(*t, hit->config, *image, hit->microseconds);
            }
        }
    }
    std::vector<Candidate> list;
    for (ops::Tactic const* t : tactics) {
        ops::Support const s = ops::supportsFormats(*t, problem);
        if (!s.ok) {
            refuse(*t, s.reason);
            continue;
        }
        for (ops::Config const& config : t->configs(problem)) {
            Candidate c;
            c.tactic = t;
            c.config = config;
            auto image = t->build(problem, config);
            if (!image.ok()) {
                refuse(*t, image.error().message);
                continue;
            }
            c.image = *image;
            auto kernel = t->load(problem, config, c.image);
            if (!kernel.ok()) {
                refuse(*t, kernel.error().message);
                continue;
            }
            c.kernel = std::move(*kernel);
            auto checked = checkKernel(problem, *c.kernel, t->name(), *options.workers);
            if (!checked.ok()) {
                refuse(*t, checked.error().message);
                if (options.log)
                    options.log->warning(where + ": " + checked.error().message + "; the tactic is not used");
                continue;
            }
            // What cannot be compared is not chosen, but for the op's plain tactic: it is the best there is then.
            auto const own = ownTactics(*problem.node, options.backend);
            bool const isPlain = !own.empty() && t == own.back();
            if (!checked->empty() && !isPlain) {
                refuse(*t, "it cannot be checked: " + *checked);
                continue;
            }
            if (!checked->empty() && options.log)
                options.log->info(where + ": tactic " + t->name() + " is used unchecked: " + *checked);
            list.push_back(std::move(c));
        }
    }
    if (list.empty())
        return Error{ErrorCode::kInternal,
                     "could not find any implementation for node " + problem.node->name +
                         ". Try increasing the workspace size with IBuilderConfig::setMemoryPoolLimit(). Candidates:" +
                         refusals};
    size_t best = 0;
    if (options.heuristicOnly) {
        for (size_t i = 0; i < list.size(); ++i) {
            list[i].microseconds = list[i].tactic->estimate(problem, list[i].config);
            bool const known = list[i].microseconds > 0; // the order of the list decides among unknown ones
            if (known && (list[best].microseconds <= 0 || list[i].microseconds < list[best].microseconds))
                best = i;
        }
    } else if (list.size() > 1 || options.timeAlways) {
        auto buffers = makeBuffers(problem); // without buffers (no memory, no inputs that suit) the first is taken
        if (buffers.ok())
            timeAll(problem, list, *buffers, options.rounds, *options.workers);
        auto median = [&](size_t i) { return list[i].ratios[list[i].ratios.size() / 2]; };
        for (size_t i = 1; buffers.ok() && i < list.size(); ++i)
            if (median(i) * kTie < median(best))
                best = i;
    }
    Candidate& winner = list[best];
    if (options.cache && !options.heuristicOnly)
        options.cache->insert(key, CacheEntry{winner.tactic->id(), winner.config, winner.microseconds});
    return toChoice(*winner.tactic, winner.config, std::move(winner.image), winner.microseconds);
}

} // namespace tw::tune
