// SPDX-License-Identifier: Apache-2.0
// Kernels of an engine's steps: those of the plan, else others that do their work.
#include <algorithm>
#include <optional>

#include "device/cuda/target.h"
#include "device/memory_source.h"
#include "ir/op_def.h"
#include "runtime/constants.h"
#include "runtime/engine.h"
#include "runtime/retarget.h"
#include "tactic/cuda_library.h"
#include "tactic/cuda_tactic.h"
#include "tactic/packed_constants.h"

namespace tw::runtime {

namespace {

ops::TensorSpec specOf(ir::Value const* v, Instance const& opt, Instance const& max)
{
    ops::TensorSpec spec;
    spec.present = v != nullptr;
    if (!v)
        return spec;
    size_t const i = size_t(opt.block->indexOf(v));
    spec.type = v->type;
    spec.format = v->format;
    spec.dims = opt.values[i].dims;
    spec.maxDims = max.values[i].dims;
    spec.constant = v->constant ? v->constant->data.get() : nullptr;
    if (opt.values[i].hasContents)
        spec.contents = opt.values[i].contents.ref();
    return spec;
}

// The host's shape arithmetic has CPU kernels on every backend.
ops::Backend backendOf(LoadedStep const& step, LoadOptions const& options)
{
    return step.host ? ops::Backend::kCpu : options.backend();
}

ops::Tactic const* findTactic(LoadedStep const& step, uint64_t id, LoadOptions const& options)
{
    ops::Backend const backend = backendOf(step, options);
    auto const own = step.node->op->tactics(backend == ops::Backend::kCuda);
    std::vector<ops::Tactic const*> list(own.begin(), own.end());
    for (ops::TacticProvider const* p : options.providers)
        p->tactics(*step.node, backend, list);
    for (ops::Tactic const* t : list)
        if (t->id() == id)
            return t;
    return nullptr;
}

// First all problems, then all kernels: these do not depend on each other, so workers share them.
class Loader
{
public:
    explicit Loader(LoadOptions const& options) : options_(options), packed_(options.packed ? options.packed : &own_) {}

    Result<void> load(LoadedBlock& block, plan::Block const* planned, Instance const& opt, Instance const& max,
                      SharedKernels const& shared)
    {
        TW_TRY(collect(block, planned, opt, max, shared));
        // Large weights first, so that no worker is left with one at the end.
        std::ranges::stable_sort(tasks_,
                                 [](Task const& a, Task const& b) { return a.constantBytes > b.constantBytes; });
        auto const source = device::SourceScope::current();
        auto loadOne = [&](Task& t) {
            device::SourceScope const scope(source);
            if (auto done = loadStep(t); !done.ok())
                t.error = done.error();
            for (ir::Value const* v : t.step->node->inputs)
                if (options_.pages && v && v->constant && !(t.usesPanels && options_.panels->contains(v)))
                    options_.pages->done(v->constant->data->data(), v->constant->data->sizeBytes());
        };
        auto const others = std::ranges::stable_partition(tasks_, [&](Task const& t) { return isForWorkers(t); });
        options_.workers->run(int64_t(tasks_.size() - others.size()),
                              [&](int64_t i, int) { loadOne(tasks_[size_t(i)]); });
        std::ranges::for_each(others, loadOne);
        for (Task const& t : tasks_)
            if (t.error)
                return *t.error;
        for (Task const& t : tasks_)
            if (!t.unfolded.empty())
                shared.unfolded->insert(t.unfolded.begin(), t.unfolded.end());
        for (Task const& t : tasks_)
            if (options_.log && !t.refusal.empty())
                options_.log->verbose("layer '{}': tactic {} of the plan cannot run here ({}); {} is used",
                                      t.step->node->name, t.choice->name, t.refusal, t.step->tactic->name());
        return {};
    }
    Loaded loaded() const
    {
        auto count = [&](auto const& isOne) { return int(std::ranges::count_if(tasks_, isOne)); };
        return {count([](Task const& t) { return t.isReplaced; }),
                count([](Task const& t) { return !t.refusal.empty(); }),
                count([](Task const& t) { return !t.refusal.empty() && t.isPlain; }),
                count([](Task const& t) { return t.isRetargeted; }),
                count([](Task const& t) { return t.isByEstimate; }),
                count([](Task const& t) { return t.usesPanels; })};
    }

private:
    struct Task
    {
        LoadedStep* step = nullptr;
        plan::Choice const* choice = nullptr;
        ops::Problem problem;
        int64_t constantBytes = 0;
        bool isReplaced = false, isPlain = false, usesPanels = false, isRetargeted = false, isByEstimate = false;
        std::string refusal; // why the plan's choice cannot run
        std::optional<Error> error;
        std::map<ir::Value*, BlobPtr> unfolded; // constants in panels that it needs in the order of their shape
    };

    // On a GPU our own kernels, whose weights are packed meanwhile. Libraries stay on the calling thread, and client code, which may
    // mind threads: plugins, and an allocator.
    bool isForWorkers(Task const& task) const
    {
        if (!options_.cuda)
            return true;
        auto const isChosen = [&](ops::Tactic const* t) {
            return t->id() == task.choice->tactic && dynamic_cast<ops::CudaTactic const*>(t);
        };
        return task.choice && options_.cuda->device && !options_.cuda->device->allocator() &&
               std::ranges::any_of(task.step->node->op->tactics(true), isChosen);
    }
    // The kernel of the same step with other weights, if it reads none of those that are new.
    static bool takeOver(LoadedStep& step, LoadedStep const& like)
    {
        auto const &mine = step.node->inputs, &its = like.node->inputs;
        for (size_t i = 0; i < mine.size(); ++i)
            if (mine[i] && mine[i]->isConstant() && mine[i]->constant->data != its[i]->constant->data)
                return false;
        share(step, like);
        return step.kernel != nullptr;
    }
    static void share(LoadedStep& step, LoadedStep const& with)
    {
        step.kernel = with.kernel;
        step.tactic = with.tactic;
    }
    Result<void> collect(LoadedBlock& block, plan::Block const* planned, Instance const& opt, Instance const& max,
                         SharedKernels const& shared)
    {
        LoadedBlock const *const like = shared.like, *const first = shared.first;
        for (size_t i = 0; i < block.steps.size(); ++i) {
            LoadedStep& step = block.steps[i];
            plan::Step const* choice = planned && i < planned->steps.size() ? &planned->steps[i] : nullptr;
            for (size_t r = 0; r < step.regions.size(); ++r) {
                TW_TRY(collect(*step.regions[r], choice && r < choice->regions.size() ? &choice->regions[r] : nullptr,
                               *opt.regions[i][r], *max.regions[i][r], shared.ofRegion(i, r)));
            }
            if (!step.regions.empty())
                continue;
            if (first && choice && choice->choice.tactic == 0) {
                share(step, first->steps[i]);
                continue;
            }
            if (like && takeOver(step, like->steps[i]))
                continue;
            Task t;
            t.step = &step;
            t.choice = choice ? &choice->choice : nullptr;
            t.problem =
                problemOf(step, opt, shared.isUsed(i) ? *shared.most : max, options_.threads, options_.cuda.get());
            for (ops::TensorSpec const& spec : t.problem.inputs)
                t.constantBytes += spec.constant ? int64_t(spec.constant->sizeBytes()) : 0;
            tasks_.push_back(std::move(t));
        }
        return {};
    }
    // A kernel that may live longer than what it was loaded for.
    std::shared_ptr<ops::Kernel> held(std::unique_ptr<ops::Kernel> kernel) const
    {
        struct Held
        {
            std::shared_ptr<void const> graph;
            std::unique_ptr<ops::Kernel> kernel;
        };
        if (!options_.keepsGraph)
            return kernel;
        auto const both = std::make_shared<Held>(Held{options_.keepsGraph, std::move(kernel)});
        return {both, both->kernel.get()};
    }
    // Of a task's constants in panels, all but input `except`.
    Result<void> unfoldPanels(Task& task, size_t except = SIZE_MAX)
    {
        for (size_t i = 0; options_.panels && i < task.step->node->inputs.size(); ++i) {
            ir::Value* const v = task.step->node->inputs[i];
            auto const order = options_.panels->find(v);
            if (i == except || order == options_.panels->end())
                continue;
            TW_ASSIGN(task.unfolded[v], unfolded(*v->constant->data, order->second, *packed_));
            task.problem.inputs[i].constant = task.unfolded[v].get();
        }
        return {};
    }
    // A kernel that reads the panels of the plan; null: there is none, or another order is wanted.
    Result<std::unique_ptr<ops::Kernel>> loadPanels(Task& task, ops::Tactic const& tactic, ops::Config const& config)
    {
        constexpr size_t kInput = ops::PanelTactic::kPanelInput, kAlignment = 64;
        ir::Node const& node = *task.step->node;
        auto const* reader = options_.panels ? dynamic_cast<ops::PanelTactic const*>(&tactic) : nullptr;
        if (!reader || node.inputs.size() <= kInput || !node.inputs[kInput])
            return std::unique_ptr<ops::Kernel>();
        auto const order = options_.panels->find(node.inputs[kInput]);
        if (order == options_.panels->end())
            return std::unique_ptr<ops::Kernel>();
        Blob const& data = *node.inputs[kInput]->constant->data;
        if (reinterpret_cast<uintptr_t>(data.data()) % kAlignment != 0 ||
            reader->panelOrder(task.problem, config) != order->second)
            return std::unique_ptr<ops::Kernel>();
        TW_TRY(unfoldPanels(task, kInput));
        auto const lent = std::make_shared<Blob const>(data.data(), data.sizeBytes(), node.inputs[kInput]->constant);
        TW_ASSIGN(auto kernel, reader->loadPanels(task.problem, config, lent));
        task.usesPanels = lent.use_count() > 1; // else the kernel has made something else of them
        return kernel;
    }
    Result<std::unique_ptr<ops::Kernel>> loadChosen(Task& task, ops::Tactic const& tactic, ops::Config const& config,
                                                    std::string const& image)
    {
        auto kernel = loadPanels(task, tactic, config);
        if (kernel.ok() && !*kernel) {
            TW_TRY(unfoldPanels(task));
            kernel = ops::loadWith(tactic, task.problem, config, image, *packed_);
        }
        return kernel;
    }
    // The plan's choice, or what does its work on this CPU; false, with the reason in the task: it cannot run here.
    bool loadPlanned(Task& task, plan::Choice const& choice)
    {
        LoadedStep& step = *task.step;
        ops::Tactic const* t = findTactic(step, choice.tactic, options_);
        auto const own = step.node->op->tactics(backendOf(step, options_) == ops::Backend::kCuda);
        ops::Config const* config = &choice.config;
        std::optional<Retargeted> other;
        bool const isOwn = !t || contains(own, t); // not a provider's
        if (options_.retargets && isOwn) {
            other = retarget(own, task.problem, choice.name, choice.config);
            task.isRetargeted = other && other->tactic != t;
            task.isByEstimate = task.isRetargeted && !other->sameAlgorithm;
            if (other) {
                t = other->tactic;
                config = &other->config;
            }
        }
        ops::Support const s =
            t ? ops::supportsFormats(*t, task.problem) : ops::Support::no("this library does not have it");
        if (!s.ok) {
            task.refusal = s.reason;
            return false;
        }
        Result<std::string> const image = task.isRetargeted ? t->build(task.problem, *config) : choice.image;
        auto kernel = image.ok() ? loadChosen(task, *t, *config, *image) : image.error();
        if (!kernel.ok()) {
            task.isRetargeted = task.isByEstimate = false;
            task.refusal = kernel.error().message;
            return false;
        }
        step.tactic = t;
        step.kernel = held(std::move(*kernel));
        return true;
    }
    // What is expected to be fastest of what can do the work, where the planned kernel cannot; false: there is nothing but the
    // plain kernel.
    bool loadBest(Task& task)
    {
        LoadedStep& step = *task.step;
        auto const best =
            bestByEstimate(step.node->op->tactics(backendOf(step, options_) == ops::Backend::kCuda), task.problem);
        if (!best)
            return false;
        Result<std::string> const image = best->tactic->build(task.problem, best->config);
        auto kernel = image.ok() ? loadChosen(task, *best->tactic, best->config, *image) : image.error();
        if (!kernel.ok())
            return false;
        step.tactic = best->tactic;
        step.kernel = held(std::move(*kernel));
        return true;
    }
    Result<void> loadStep(Task& task)
    {
        LoadedStep& step = *task.step;
        ops::Problem const& problem = task.problem;
        bool const isPlanned = task.choice && task.choice->tactic != 0;
        if (isPlanned && loadPlanned(task, *task.choice))
            return {};
        task.isReplaced = true;
        if (isPlanned && loadBest(task))
            return {};
        task.isPlain = true;
        TW_TRY(unfoldPanels(task));
        ops::Backend const backend = backendOf(step, options_);
        auto const list = step.node->op->tactics(backend == ops::Backend::kCuda);
        if (list.empty())
            return unsupported("layer '{}' ({}) has no {} implementation", step.node->name, step.node->op->name,
                               backend == ops::Backend::kCuda ? "CUDA" : "CPU");
        step.tactic = list.back();
        std::unique_ptr<ops::Kernel> plain;
        auto loadPlain = [&]() -> Result<void> {
            TW_ASSIGN(std::string const image, step.tactic->build(problem, {}));
            TW_ASSIGN(plain, ops::loadWith(*step.tactic, problem, {}, image, *packed_));
            return {};
        };
        if (auto done = loadPlain(); !done.ok())
            return std::move(done).error().in("layer '" + step.node->name + "': " +
                                              (task.refusal.empty() ? std::string()
                                                                    : "its kernel of the plan cannot run here (" +
                                                                          task.refusal + "), nor can the plain one, ") +
                                              step.tactic->name());
        ops::Formats const formats = ops::formatsOf(problem);
        auto const offered = step.tactic->formats(problem);
        bool const isNative = contains(offered, formats);
        if (!isNative && !(formats == ops::linearFormats(problem))) {
            if (backend == ops::Backend::kCuda)
                return unsupported("layer '{}': its formats need the kernel of the plan", step.node->name);
            plain = linearAdapter(std::move(plain));
        }
        step.kernel = held(std::move(plain));
        return {};
    }
    LoadOptions const& options_;
    ops::PackedConstants own_;
    ops::PackedConstants* packed_;
    std::vector<Task> tasks_;
};

} // namespace

// Kernels of libraries have no stand-in that would be as fast: who built with them wants them here.
Result<void> checkLibraries(LoadedBlock const& block, plan::Block const& planned, LoadOptions const& options)
{
    for (size_t i = 0; i < block.steps.size() && i < planned.steps.size(); ++i) {
        LoadedStep const& step = block.steps[i];
        for (size_t r = 0; r < step.regions.size() && r < planned.steps[i].regions.size(); ++r)
            TW_TRY(checkLibraries(*step.regions[r], planned.steps[i].regions[r], options));
        plan::Choice const& choice = planned.steps[i].choice;
        ops::Tactic const* t =
            choice.tactic && step.regions.empty() ? findTactic(step, choice.tactic, options) : nullptr;
        if (!t || backendOf(step, options) != ops::Backend::kCuda)
            continue;
        if (auto there = ops::openLibrary(t->source(), *options.cuda); !there.ok()) {
            bool const isLt = t->source() == ops::Source::kCublasLt;
            return failedInitialization(
                "layer '" + step.node->name + "': its kernel " + t->name() + " is one of " + ops::nameOf(t->source()) +
                ", which cannot be used here: " + there.error().message + "; install it, name it in " +
                (isLt ? "TENSORWRIGHT_CUBLASLT" : "TENSORWRIGHT_CUDNN") +
                ", or build the engine without it (IBuilderConfig::setTacticSources, trtexec "
                "--tacticSources=-" +
                (isLt ? "CUBLAS_LT" : "CUDNN") + ")");
        }
    }
    return {};
}

SharedKernels SharedKernels::ofRegion(size_t step, size_t region) const
{
    SharedKernels inner{like ? like->steps[step].regions[region].get() : nullptr,
                        first ? first->steps[step].regions[region].get() : nullptr,
                        {},
                        most ? most->regions[step][region].get() : nullptr};
    for (plan::Block const* user : users)
        if (step < user->steps.size() && region < user->steps[step].regions.size())
            inner.users.push_back(&user->steps[step].regions[region]);
    return inner;
}

bool SharedKernels::isUsed(size_t step) const
{
    return most && std::ranges::any_of(users, [&](plan::Block const* user) {
               return step < user->steps.size() && user->steps[step].choice.tactic == 0;
           });
}

void Loaded::add(Loaded const& other)
{
    replaced += other.replaced;
    refused += other.refused;
    plain += other.plain;
    retargeted += other.retargeted;
    byEstimate += other.byEstimate;
    inPanels += other.inPanels;
}

std::string Loaded::inOtherPlaces(std::string const& where) const
{
    std::string const text = fmt::format("{} kernels of the plan cannot run {}, and ", refused, where);
    int const others = refused - plain;
    if (others == 0)
        return text + "plain ones, which are slow, take their place";
    return text + (plain == 0 ? "those that are expected to be fastest take their place"
                              : fmt::format("{} of another kind and {} plain ones, which are slow, take their place",
                                            others, plain));
}

ops::Problem problemOf(LoadedStep const& step, Instance const& opt, Instance const& max, int threads,
                       cuda::Target const* cuda)
{
    ops::Problem p;
    p.threads = threads;
    p.target.cuda = step.host ? nullptr : cuda;
    p.node = step.node;
    for (ir::Value const* v : step.node->inputs)
        p.inputs.push_back(specOf(v, opt, max));
    for (ir::Value const* v : step.node->outputs)
        p.outputs.push_back(specOf(v, opt, max));
    return p;
}

Result<Loaded> loadKernels(LoadedBlock& block, plan::Block const* planned, Instance const& opt, Instance const& max,
                           LoadOptions const& options, SharedKernels const& shared)
{
    Loader loader(options);
    TW_TRY(loader.load(block, planned, opt, max, shared));
    return loader.loaded();
}

} // namespace tw::runtime
