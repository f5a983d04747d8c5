// SPDX-License-Identifier: Apache-2.0
#include "builder/profiles.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/lists.h"
#include "runtime/profile_shapes.h"
#include "tune/phases.h"
#include "tune/rivals.h"

namespace tw::builder {

namespace {

bool isSame(plan::Choice const& a, plan::Choice const& b)
{
    return a.tactic == b.tactic && a.version == b.version && a.config == b.config;
}

// A profile: what was chosen for it, with kernels, in its shapes.
struct Profile
{
    plan::Block* chosen;
    runtime::LoadedBlock const* loaded;
    runtime::Instance const *opt, *max;
};

std::vector<Profile> regionsOf(std::vector<Profile> const& profiles, size_t step, size_t region)
{
    return mapped(profiles, [&](Profile const& p) {
        return Profile{&p.chosen->steps[step].regions[region], p.loaded->steps[step].regions[region].get(),
                       p.opt->regions[step][region].get(), p.max->regions[step][region].get()};
    });
}

// One kernel for all profiles where kernels of their own would each pack large weights in another order, unless it is
// clearly slower in one of them: weights are kept once.
class WeightsOnce
{
public:
    explicit WeightsOnce(Options const& options) : options_(options) {}

    Result<void> run(std::vector<Profile> const& profiles)
    {
        for (size_t i = 0; i < profiles[0].chosen->steps.size(); ++i) {
            for (size_t r = 0; r < profiles[0].chosen->steps[i].regions.size(); ++r)
                TW_TRY(run(regionsOf(profiles, i, r)));
            if (std::ranges::any_of(profiles, [&](Profile const& p) { return packs(p.loaded->steps[i]); }))
                TW_TRY(unify(profiles, i));
        }
        return {};
    }

private:
    bool packs(runtime::LoadedStep const& step) const
    {
        for (size_t k = 0; step.kernel && k < step.node->inputs.size(); ++k) {
            ir::Value const* const v = step.node->inputs[k];
            bool const isLarge = v && v->isConstant() && v->constant->data->sizeBytes() >= kLargeBytes;
            if (isLarge && !(options_.cuda ? step.kernel->readsOnDevice(k) : step.kernel->readsConstant(k)))
                return true;
        }
        return false;
    }
    // The time of a choice over that of the best; none: it was not timed there.
    static std::optional<double> ratioOf(plan::Choice const& choice, plan::Choice const& best)
    {
        if (choice.tactic == best.tactic && choice.config == best.config)
            return 1;
        auto const at =
            std::ranges::find(best.rivals, tune::nameWithConfig(choice.name, choice.config), &plan::Rival::name);
        if (at == best.rivals.end() || !(at->microseconds > 0) || !(best.microseconds > 0))
            return std::nullopt;
        return at->microseconds / best.microseconds;
    }
    Result<void> unify(std::vector<Profile> const& profiles, size_t i)
    {
        Profile const* from = nullptr;
        double least = options_.cuda ? kMostOnGpu : kMostOnCpu;
        for (Profile const& candidate : profiles) {
            double worst = 1;
            for (Profile const& p : profiles)
                worst = std::max(
                    worst, ratioOf(candidate.chosen->steps[i].choice, p.chosen->steps[i].choice).value_or(INFINITY));
            if (worst < least) {
                least = worst;
                from = &candidate;
            }
        }
        if (!from)
            return {};
        plan::Choice const taken = from->chosen->steps[i].choice;
        for (Profile const& p : profiles) {
            plan::Choice& choice = p.chosen->steps[i].choice;
            if (isSame(choice, taken))
                continue;
            ops::Problem const problem = runtime::problemOf(p.loaded->steps[i], *p.opt, *p.max,
                                                            options_.tune.workers->count(), options_.cuda.get());
            if (!ops::supportsFormats(*from->loaded->steps[i].tactic, problem).ok)
                continue;
            TW_ASSIGN(std::string image, from->loaded->steps[i].tactic->build(problem, taken.config));
            plan::Rival best{tune::nameWithConfig(choice.name, choice.config), choice.microseconds,
                             "the weights would be in memory once more, in its order"};
            plan::Choice next = taken;
            next.image = std::move(image);
            next.microseconds = *ratioOf(taken, choice) * choice.microseconds;
            next.rivals = choice.rivals;
            std::erase_if(next.rivals, [&](plan::Rival const& r) {
                return r.name == tune::nameWithConfig(taken.name, taken.config);
            });
            next.rivals.insert(next.rivals.begin(), std::move(best));
            choice = std::move(next);
        }
        return {};
    }

    static constexpr size_t kLargeBytes = 64 << 10;
    // Layers are timed with weights that a CPU's caches may hold, which networks' do not: few rows then take as long as
    // memory does, whatever the kernel.
    static constexpr double kMostOnCpu = 1.2, kMostOnGpu = 1.03;
    Options const& options_;
};

} // namespace

namespace {

// Leaves no tactic where the first profile's kernel runs, made for the bounds of all profiles (`most`); the times stay. Whether
// one is left.
Result<bool> dropShared(Options const& options, std::vector<Profile> const& profiles, runtime::Instance const& most)
{
    bool isLeft = false;
    for (size_t i = 0; i < profiles[0].chosen->steps.size(); ++i) {
        plan::Step& first = profiles[0].chosen->steps[i];
        for (size_t r = 0; r < first.regions.size(); ++r) {
            TW_ASSIGN(bool const isInner, dropShared(options, regionsOf(profiles, i, r), *most.regions[i][r]));
            isLeft = isLeft || isInner;
        }
        auto const from = std::ranges::find_if(profiles, [&](Profile const& p) {
            ops::Tactic const* const t = p.loaded->steps[i].tactic;
            return t && t->id() == first.choice.tactic;
        });
        if (from == profiles.end())
            continue;
        ops::Tactic const* const tactic = from->loaded->steps[i].tactic;
        ops::Problem const forAll = runtime::problemOf(profiles[0].loaded->steps[i], *profiles[0].opt, most,
                                                       options.tune.workers->count(), options.cuda.get());
        std::optional<std::string> image;
        for (size_t p = 1; p < profiles.size(); ++p) {
            plan::Choice& choice = profiles[p].chosen->steps[i].choice;
            if (isSame(choice, first.choice) && ops::supportsFormats(*tactic, forAll).ok) {
                if (!image)
                    TW_SET(image, tactic->build(forAll, choice.config));
                choice = {.microseconds = choice.microseconds, .rivals = std::move(choice.rivals)};
            }
            isLeft = isLeft || choice.tactic != 0;
        }
        if (image)
            first.choice.image = std::move(*image);
    }
    return isLeft;
}

} // namespace

bool choosesByProfile(plan::Contents const& contents, Options const& options)
{
    return contents.profiles.size() > 1 && !options.tune.selector;
}

Result<void> chooseForOthers(plan::Contents const& contents, Options const& options, Chooser& chooser,
                             runtime::LoadOptions const& load, Attempt& attempt)
{
    tune::Phases::Scope const phase(options.tune.phases, "other profiles");
    runtime::LoadedBlock& first = *attempt.block;
    TW_ASSIGN(runtime::NetworkShapes shapes, runtime::resolveProfiles(contents, first));
    for (size_t p = 1; p < contents.profiles.size(); ++p) {
        if (options.maxMemoryBytes > 0)
            TW_TRY(checkTuningMemory(first, shapes.opt(p), options.maxMemoryBytes));
        ShapePoints const points(contents, first, p);
        CompileAhead ahead(options);
        if (options.cuda)
            ahead.start(first, shapes.opt(p), shapes.max(p), points);
        TW_ASSIGN(plan::Block chosen, chooser.choose(first, shapes.opt(p), shapes.max(p), {nullptr, &points}));
        ahead.settle();
        attempt.others.push_back(std::move(chosen));
        attempt.otherBlocks.push_back(runtime::outlineBlock(*attempt.graph));
    }
    tune::Phases::Scope const loading(options.tune.phases, "loading engines");
    std::vector<Profile> profiles{{&attempt.root, &first, &shapes.opt(), &shapes.max(0)}};
    for (size_t p = 1; p < contents.profiles.size(); ++p) {
        runtime::LoadedBlock& block = *attempt.otherBlocks[p - 1];
        TW_TRY(runtime::loadKernels(block, &attempt.others[p - 1], shapes.opt(p), shapes.max(p), load));
        profiles.push_back({&attempt.others[p - 1], &block, &shapes.opt(p), &shapes.max(p)});
    }
    TW_TRY(WeightsOnce(options).run(profiles));
    TW_ASSIGN(bool const isLeft, dropShared(options, profiles, shapes.max()));
    // As the runtime will.
    if (!isLeft) {
        attempt.others.clear();
        attempt.otherBlocks.clear();
        TW_TRY(runtime::loadKernels(first, &attempt.root, shapes.opt(), shapes.max(), load));
        return {};
    }
    runtime::SharedKernels shared{.most = &shapes.max()};
    for (plan::Block const& other : attempt.others)
        shared.users.push_back(&other);
    TW_TRY(runtime::loadKernels(first, &attempt.root, shapes.opt(), shapes.max(0), load, shared));
    for (size_t p = 1; p <= attempt.others.size(); ++p)
        TW_TRY(runtime::loadKernels(*attempt.otherBlocks[p - 1], &attempt.others[p - 1], shapes.opt(p), shapes.max(p),
                                    load, {.first = &first}));
    return {};
}

} // namespace tw::builder
