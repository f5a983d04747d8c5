// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "device/cuda/device.h"
#include "ir/op_def.h"
#include "runtime/execute_cuda.h"
#include "tactic/convert_format.h"

namespace tw::runtime {

CudaValues::CudaValues(Instance& instance, ExecuteArgs const& args)
    : inst_(instance), block_(*instance.block), arena_(args.arena), hostWaits_(args.hostWaits), device_(*args.device),
      driver_(device_->driver()), stream_(static_cast<CUstream_st*>(args.stream))
{}

void CudaValues::bind(std::vector<HostDevice> const& inputs, std::span<TensorRef> outputs)
{
    ir::Graph const& g = *block_.graph;
    bool const isFirst = inst_.hostRefs.empty();
    inst_.hostRefs.resize(inst_.values.size());
    inst_.stale.assign(inst_.values.size(), false);
    for (size_t v = 0; v < inst_.values.size(); ++v) {
        ValueState const& s = inst_.values[v];
        TensorRef &r = inst_.refs[v], &h = inst_.hostRefs[v];
        if (isFirst || !s.exact) // no run changes the others
            r = h = inst_.shapeOf(int(v));
        r.data = h.data = nullptr;
        if (block_.values[v]->isConstant()) {
            r.data = block_.deviceConstants[v];
            h.data = const_cast<void*>(block_.values[v]->constant->data->data());
        } else if (s.hasContents) {
            r.data = inst_.deviceContents[v];
            h.data = s.contents.data();
        } else if (s.offset >= 0) {
            r.data = at(arena_, s.offset);
        }
    }
    for (size_t i = 0; i < g.outputs.size(); ++i) {
        size_t const v = size_t(block_.indexOf(g.outputs[i]));
        if (inst_.values[v].external && g.outputs[i]->producer && !g.outputs[i]->host && i < outputs.size() &&
            outputs[i].data)
            inst_.refs[v].data = outputs[i].data;
    }
    for (size_t i = 0; i < g.inputs.size(); ++i) {
        size_t const v = size_t(block_.indexOf(g.inputs[i]));
        if (inst_.values[v].hasContents) // both are there already
            continue;
        inst_.refs[v] = inputs[i].device;
        inst_.hostRefs[v] = inputs[i].host;
        inst_.stale[v] = !inputs[i].device.data && inputs[i].host.data;
        if (inst_.stale[v]) {
            inst_.refs[v] = inputs[i].host;
            inst_.refs[v].data = nullptr;
        }
    }
    for (size_t v = 0; v < inst_.values.size(); ++v) {
        int64_t offset = 0;
        if (size_t const root = rootOf(v, offset); root != v)
            inst_.refs[v].data = inst_.refs[root].data ? at(inst_.refs[root].data, offset) : nullptr;
    }
}

size_t CudaValues::rootOf(size_t v, int64_t& offset) const
{
    while (inst_.values[v].root != int(v)) {
        offset += inst_.values[v].rootOffset;
        v = size_t(inst_.values[v].root);
    }
    return v;
}

Result<void> CudaValues::bringToHost(size_t v)
{
    TensorRef& h = inst_.hostRefs[v];
    TensorRef const& r = inst_.refs[v];
    if (h.data)
        return {};
    int64_t offset = 0;
    if (size_t const root = rootOf(v, offset); root != v && inst_.stale[root]) {
        TW_TRY(bringToHost(root));
        h = r;
        h.data = at(inst_.hostRefs[root].data, offset);
        return {};
    }
    inst_.heap.emplace_back(r.type, r.dims);
    TensorRef const copy = inst_.heap.back().ref();
    if (!copy.data)
        return failedAllocation("no memory for a value on the host");
    if (copy.sizeBytes() > 0) {
        if (!r.data)
            return internalError("value '{}' is nowhere", block_.values[v]->name);
        TW_CUDA(driver_, cuMemcpyDtoHAsync(copy.data, cuda::addressOf(r.data), size_t(copy.sizeBytes()), stream_));
        TW_TRY(wait());
    }
    h = copy;
    return {};
}

Result<void> CudaValues::wait()
{
    if (hostWaits_)
        ++*hostWaits_;
    TW_CUDA(driver_, cuStreamSynchronize(stream_));
    return {};
}

Result<Tensor> CudaValues::elementsOf(HostDevice const& place)
{
    TensorRef const& from = place.host.data ? place.host : place.device;
    Tensor t(from.type, from.dims);
    if (!t.data())
        return failedAllocation("no memory for a value on the host");
    size_t const bytes = size_t(from.sizeBytes());
    if (place.host.data) {
        std::memcpy(t.data(), from.data, bytes);
    } else if (bytes > 0) {
        TW_CUDA(driver_, cuMemcpyDtoHAsync(t.data(), cuda::addressOf(from.data), bytes, stream_));
        TW_TRY(wait());
    }
    return t;
}

Result<void> CudaValues::bringToDevice(size_t v)
{
    TensorRef& r = inst_.refs[v];
    int64_t offset = 0;
    size_t const root = rootOf(v, offset);
    if (root != v && inst_.stale[root]) {
        TW_TRY(bringToDevice(root));
        r.data = at(inst_.refs[root].data, offset);
        return {};
    }
    if (r.data && !inst_.stale[v])
        return {};
    TensorRef const& h = inst_.hostRefs[v];
    r.dims = h.dims;
    if (!r.data)
        TW_TRY(allocate(r));
    if (r.sizeBytes() > 0) {
        if (!h.data)
            return internalError("value '{}' is nowhere", block_.values[v]->name);
        TW_CUDA(driver_, cuMemcpyHtoDAsync(cuda::addressOf(r.data), h.data, size_t(r.sizeBytes()), stream_));
    }
    inst_.stale[v] = false;
    return {};
}

Result<void> CudaValues::allocate(TensorRef& r)
{
    TW_ASSIGN(cuda::Buffer b, cuda::Buffer::allocate(device_, r.sizeBytes()));
    inst_.deviceHeap.push_back(std::make_shared<cuda::Buffer>(std::move(b)));
    r.data = inst_.deviceHeap.back()->data();
    return {};
}

Result<void> CudaValues::copyOnDevice(void* to, void const* from, int64_t bytes)
{
    if (bytes == 0 || to == from)
        return {};
    TW_CUDA(driver_, cuMemcpyDtoDAsync(cuda::addressOf(to), cuda::addressOf(from), size_t(bytes), stream_));
    return {};
}

Result<void> CudaValues::assign(size_t v, HostDevice const& from)
{
    TensorRef& r = inst_.refs[v];
    TensorRef const& source = from.device.data ? from.device : from.host;
    int64_t const capacity = inst_.values[v].known && r.data ? inst_.shapeOf(int(v)).sizeBytes() : -1;
    r.dims = source.dims;
    if (r.sizeBytes() > capacity)
        TW_TRY(allocate(r));
    if (from.device.data)
        TW_TRY(copyOnDevice(r.data, from.device.data, r.sizeBytes()));
    else if (r.sizeBytes() > 0)
        TW_CUDA(driver_, cuMemcpyHtoDAsync(cuda::addressOf(r.data), from.host.data, size_t(r.sizeBytes()), stream_));
    inst_.hostRefs[v].data = nullptr;
    inst_.stale[v] = false;
    return {};
}

std::vector<HostDevice> CudaValues::results() const
{
    std::vector<HostDevice> out;
    for (ir::Value const* v : block_.graph->outputs) {
        size_t const i = size_t(block_.indexOf(v));
        out.push_back(HostDevice{inst_.stale[i] ? TensorRef{} : inst_.refs[i], inst_.hostRefs[i]});
    }
    return out;
}

Result<void> CudaValues::deliver(std::span<TensorRef> outputs)
{
    ir::Graph const& g = *block_.graph;
    for (size_t i = 0; i < g.outputs.size(); ++i) {
        size_t const v = size_t(block_.indexOf(g.outputs[i]));
        TensorRef& out = outputs[i];
        bool const toHost = g.outputs[i]->host;
        TW_TRY(toHost ? bringToHost(v) : bringToDevice(v));
        TensorRef const& from = toHost ? inst_.hostRefs[v] : inst_.refs[v];
        out.type = from.type;
        out.dims = from.dims;
        out.format = from.format;
        if (!out.data)
            out.data = from.data;
        else if (out.data != from.data && from.sizeBytes() > 0) {
            if (toHost)
                std::memmove(out.data, from.data, size_t(from.sizeBytes()));
            else
                TW_TRY(copyOnDevice(out.data, from.data, from.sizeBytes()));
        }
        if (!toHost)
            TW_TRY(zeroGaps(out, *g.outputs[i]));
    }
    return {};
}

// Clients find zeros there. Reformats write them themselves.
Result<void> CudaValues::zeroGaps(TensorRef const& t, ir::Value const& v)
{
    if (v.producer && v.producer->op->convertsFormat)
        return {};
    size_t const bytes = size_t(sizeOf(t.type));
    for (ops::Gap const& g : ops::gapsOf(t))
        TW_CUDA(driver_, cuMemsetD2D8Async(cuda::addressOf(t.data) + uint64_t(g.begin) * bytes, size_t(g.pitch) * bytes,
                                           0, size_t(g.width) * bytes, size_t(g.rows), stream_));
    return {};
}

} // namespace tw::runtime
