// SPDX-License-Identifier: Apache-2.0
// Graphs that clients build by hand, and what captured and built graphs share.
#include <algorithm>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <utility>

#include "copy.h"
#include "state.h"

namespace tw::hostcuda {

std::shared_ptr<Graph> makeGraph()
{
    auto graph = std::make_shared<Graph>();
    graph->handle = state().graphs.add<cudaGraph_t>(graph);
    return graph;
}

std::shared_ptr<Node> addNode(std::shared_ptr<Graph> const& graph, cudaGraphNodeType type, WorkPtr work,
                              std::vector<Node const*> deps)
{
    auto node = std::make_shared<Node>();
    node->type = type;
    node->work = std::move(work);
    node->deps = std::move(deps);
    node->graph = graph;
    node->handle = state().nodes.add<cudaGraphNode_t>(node);
    graph->nodes.push_back(node);
    return node;
}

void forgetGraph(std::shared_ptr<Graph> const& graph)
{
    State& s = state();
    s.graphs.remove(graph->handle);
    std::vector<std::shared_ptr<Node>> nodes; // dies outside of the lock, with what the closures hold
    {
        std::lock_guard const lock(s.structure);
        nodes = graph->nodes;
    }
    for (std::shared_ptr<Node> const& node : nodes)
        s.nodes.remove(node->handle);
}

namespace {

// Child graphs of child graphs can multiply; a list longer than this (some 100 MiB) is refused.
constexpr std::size_t kMaxSteps = std::size_t{1} << 20;

} // namespace

bool flatten(Graph const& graph, std::vector<Node const*>& order)
{
    // Kahn's order; of the nodes that are ready the one made first goes first, so a captured graph keeps its order.
    std::unordered_map<Node const*, std::size_t> index;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        index.emplace(graph.nodes[i].get(), i);
    std::vector<std::size_t> waiting(graph.nodes.size(), 0);
    std::vector<std::vector<std::size_t>> users(graph.nodes.size());
    std::vector<std::size_t> ready; // min-heap of indices
    auto const later = [](std::size_t a, std::size_t b) { return a > b; };
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        for (Node const* dep : graph.nodes[i]->deps)
            users[index.at(dep)].push_back(i);
        waiting[i] = graph.nodes[i]->deps.size();
        if (waiting[i] == 0)
            ready.push_back(i); // ascending, so already a heap
    }
    std::size_t done = 0;
    while (!ready.empty()) {
        std::pop_heap(ready.begin(), ready.end(), later);
        std::size_t const i = ready.back();
        ready.pop_back();
        ++done;
        Node const& node = *graph.nodes[i];
        if (order.size() >= kMaxSteps)
            return false;
        order.push_back(&node);
        if (node.child && !flatten(*node.child, order))
            return false;
        for (std::size_t const user : users[i])
            if (--waiting[user] == 0) {
                ready.push_back(user);
                std::push_heap(ready.begin(), ready.end(), later);
            }
    }
    return done == graph.nodes.size();
}

namespace {

// A child graph holds a copy of its graph, taken when it is added; depth is limited by how often a client did that.
std::shared_ptr<Graph> cloneLocked(Graph const& original)
{
    std::shared_ptr<Graph> clone = makeGraph();
    std::unordered_map<Node const*, Node const*> copies;
    for (std::shared_ptr<Node> const& node : original.nodes) {
        std::shared_ptr<Node> const copy = addNode(clone, node->type, node->work, {});
        copy->child = node->child; // never changes once it is a child
        copies.emplace(node.get(), copy.get());
    }
    for (std::size_t i = 0; i < original.nodes.size(); ++i)
        for (Node const* dep : original.nodes[i]->deps)
            clone->nodes[i]->deps.push_back(copies.at(dep));
    return clone;
}

// Deeper nesting of child graphs is refused: unrolling them recurses.
constexpr int kMaxNesting = 64;

int nesting(Graph const& graph)
{
    int depth = 0;
    for (std::shared_ptr<Node> const& node : graph.nodes)
        if (node->child)
            depth = std::max(depth, node->child->nesting);
    return depth + 1;
}

void add(cudaGraphNode_t* handle, cudaGraph_t graphHandle, cudaGraphNode_t const* deps, std::size_t numDeps,
         cudaGraphNodeType type, Work work, std::shared_ptr<Graph> child = nullptr)
{
    failIf(handle == nullptr || (deps == nullptr && numDeps != 0));
    State& s = state();
    std::shared_ptr<Graph> const graph = required(s.graphs.find(graphHandle));
    WorkPtr shared = work ? std::make_shared<Work const>(std::move(work)) : nullptr;
    std::lock_guard const lock(s.structure);
    std::vector<Node const*> nodes;
    for (std::size_t i = 0; i < numDeps; ++i) {
        std::shared_ptr<Node> const dep = s.nodes.find(deps[i]);
        failIf(!dep || dep->graph.lock() != graph || std::ranges::find(nodes, dep.get()) != nodes.end());
        nodes.push_back(dep.get());
    }
    std::shared_ptr<Node> const node = addNode(graph, type, std::move(shared), std::move(nodes));
    node->child = std::move(child);
    *handle = node->handle;
}

// CUDA's protocol for lists: without an array the count is returned; with one, as many as fit, the rest set to null.
template <class Keep>
void listNodes(cudaGraph_t graphHandle, cudaGraphNode_t* nodes, std::size_t* numNodes, Keep&& keep)
{
    State& s = state();
    std::shared_ptr<Graph> const graph = s.graphs.find(graphHandle);
    failIf(!graph || numNodes == nullptr);
    std::lock_guard const lock(s.structure);
    std::size_t const room = nodes != nullptr ? *numNodes : 0;
    std::size_t count = 0;
    for (std::shared_ptr<Node> const& node : graph->nodes)
        if (keep(*node)) {
            if (nodes != nullptr && count < room)
                nodes[count] = node->handle;
            ++count;
        }
    for (std::size_t i = count; i < room; ++i)
        nodes[i] = nullptr;
    *numNodes = nodes != nullptr ? std::min(room, count) : count;
}

void addDependencies(cudaGraph_t graphHandle, cudaGraphNode_t const* from, cudaGraphNode_t const* to, std::size_t count)
{
    State& s = state();
    std::shared_ptr<Graph> const graph = s.graphs.find(graphHandle);
    failIf(!graph || (count != 0 && (from == nullptr || to == nullptr)));
    std::lock_guard const lock(s.structure);
    std::vector<std::pair<Node*, Node const*>> edges;
    std::vector<std::shared_ptr<Node>> keep;
    for (std::size_t i = 0; i < count; ++i) {
        std::shared_ptr<Node> const first = s.nodes.find(from[i]);
        std::shared_ptr<Node> const second = s.nodes.find(to[i]);
        failIf(!first || !second || first == second || first->graph.lock() != graph || second->graph.lock() != graph);
        failIf(std::ranges::find(second->deps, first.get()) != second->deps.end());
        edges.emplace_back(second.get(), first.get());
        keep.push_back(second);
    }
    for (auto const& [user, dep] : edges)
        if (std::ranges::find(user->deps, dep) == user->deps.end())
            user->deps.push_back(dep);
}

void nodeDependencies(cudaGraphNode_t handle, cudaGraphNode_t* deps, std::size_t* numDeps)
{
    State& s = state();
    std::shared_ptr<Node> const node = s.nodes.find(handle);
    failIf(!node || numDeps == nullptr);
    std::lock_guard const lock(s.structure);
    std::size_t const count = node->deps.size();
    if (deps == nullptr) {
        *numDeps = count;
        return;
    }
    for (std::size_t i = 0; i < *numDeps; ++i)
        deps[i] = i < count ? node->deps[i]->handle : nullptr;
    *numDeps = std::min(*numDeps, count);
}

} // namespace
} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags)
{
    return call([&] {
        failIf(graph == nullptr || flags != 0);
        *graph = makeGraph()->handle;
    });
}

TW_CALL(cudaGraphDestroy, (cudaGraph_t graph), forgetGraph(required(state().graphs.find(graph))))

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original)
{
    return call([&] {
        State& s = state();
        std::shared_ptr<Graph> const object = s.graphs.find(original);
        failIf(clone == nullptr || !object);
        std::lock_guard const lock(s.structure);
        *clone = cloneLocked(*object)->handle;
    });
}

TW_CALL(cudaGraphAddEmptyNode, (cudaGraphNode_t * node, cudaGraph_t graph, cudaGraphNode_t const* deps, size_t numDeps),
        add(node, graph, deps, numDeps, cudaGraphNodeTypeEmpty, nullptr))

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps, size_t numDeps,
                                 cudaHostNodeParams const* params)
{
    return call([&] {
        failIf(params == nullptr || params->fn == nullptr);
        add(node, graph, deps, numDeps, cudaGraphNodeTypeHost, [fn = params->fn, userData = params->userData] {
            HostFunctionScope const scope;
            fn(userData);
        });
    });
}

TW_CALL(cudaGraphAddMemcpyNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, cudaGraphNode_t const* deps, size_t numDeps,
         cudaMemcpy3DParms const* params),
        add(node, graph, deps, numDeps, cudaGraphNodeTypeMemcpy, make3DCopy(params)))
TW_CALL(cudaGraphAddMemcpyNode1D,
        (cudaGraphNode_t * node, cudaGraph_t graph, cudaGraphNode_t const* deps, size_t numDeps, void* dst,
         void const* src, size_t count, cudaMemcpyKind kind),
        add(node, graph, deps, numDeps, cudaGraphNodeTypeMemcpy, makeCopy(dst, src, count, kind)))

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                   size_t numDeps, cudaMemsetParams const* params)
{
    return call([&] {
        failIf(params == nullptr);
        Box box{0, params->height, 1};
        failIf(__builtin_mul_overflow(params->width, std::size_t{params->elementSize}, &box.widthBytes));
        add(node, graph, deps, numDeps, cudaGraphNodeTypeMemset,
            makeFill(params->dst, params->pitch, 0, params->value, params->elementSize, box));
    });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                       size_t numDeps, cudaGraph_t child)
{
    return call([&] {
        State& s = state();
        std::shared_ptr<Graph> const object = required(s.graphs.find(child));
        std::shared_ptr<Graph> copy;
        {
            std::lock_guard const lock(s.structure);
            copy = cloneLocked(*object);
            copy->nesting = nesting(*copy);
        }
        forgetGraph(copy); // it belongs to the node; no handle names it
        failIf(copy->nesting > kMaxNesting);
        add(node, graph, deps, numDeps, cudaGraphNodeTypeGraph, nullptr, copy);
    });
}

TW_CALL(cudaGraphAddEventRecordNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, cudaGraphNode_t const* deps, size_t numDeps, cudaEvent_t event),
        add(node, graph, deps, numDeps, cudaGraphNodeTypeEventRecord, makeStamp(required(state().events.find(event)))))

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* deps,
                                      size_t numDeps, cudaEvent_t event)
{
    return call([&] {
        required(state().events.find(event));
        add(node, graph, deps, numDeps, cudaGraphNodeTypeWaitEvent, nullptr);
    });
}

TW_CALL(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes),
        listNodes(graph, nodes, numNodes, [](Node const&) { return true; }))
TW_CALL(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes),
        listNodes(graph, nodes, numNodes, [](Node const& node) { return node.deps.empty(); }))

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type)
{
    return call([&] {
        std::shared_ptr<Node> const object = state().nodes.find(node);
        failIf(!object || type == nullptr);
        *type = object->type;
    });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, char const* path, unsigned int)
{
    return call([&] {
        State& s = state();
        std::shared_ptr<Graph> const object = s.graphs.find(graph);
        failIf(!object || path == nullptr);
        std::string text = "digraph cuda {\n";
        {
            std::lock_guard const lock(s.structure);
            std::unordered_map<Node const*, std::size_t> index;
            for (std::size_t i = 0; i < object->nodes.size(); ++i) {
                Node const& node = *object->nodes[i];
                index.emplace(&node, i);
                text += "  n" + std::to_string(i) + " [label=\"type " + std::to_string(node.type) + "\"];\n";
            }
            for (std::shared_ptr<Node> const& node : object->nodes)
                for (Node const* dep : node->deps)
                    text +=
                        "  n" + std::to_string(index.at(dep)) + " -> n" + std::to_string(index.at(node.get())) + ";\n";
        }
        text += "}\n";
        std::FILE* file = std::fopen(path, "we");
        failIf(file == nullptr, cudaErrorOperatingSystem);
        bool const written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
        failIf(std::fclose(file) != 0 || !written, cudaErrorOperatingSystem);
    });
}

#if TW_CUDART_MAJOR < 13
TW_CALL(cudaGraphAddDependencies,
        (cudaGraph_t graph, cudaGraphNode_t const* from, cudaGraphNode_t const* to, size_t numDeps),
        addDependencies(graph, from, to, numDeps))
TW_CALL(cudaGraphNodeGetDependencies, (cudaGraphNode_t node, cudaGraphNode_t* deps, size_t* numDeps),
        nodeDependencies(node, deps, numDeps))
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, cudaGraphNode_t const* from, cudaGraphNode_t const* to,
                                     cudaGraphEdgeData const* edgeData, size_t numDeps)
{
    return call([&] {
        // Only plain edges: a programmatic one names a port of a kernel, and there are no kernels.
        for (size_t i = 0; edgeData != nullptr && i < numDeps; ++i)
            failIf(edgeData[i].from_port != 0 || edgeData[i].to_port != 0 || edgeData[i].type != 0,
                   cudaErrorNotSupported);
        addDependencies(graph, from, to, numDeps);
    });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* deps, cudaGraphEdgeData* edgeData,
                                         size_t* numDeps)
{
    return call([&] {
        nodeDependencies(node, deps, numDeps);
        if (deps != nullptr && edgeData != nullptr)
            std::fill_n(edgeData, *numDeps, cudaGraphEdgeData{});
    });
}
#endif
