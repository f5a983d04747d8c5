// SPDX-License-Identifier: Apache-2.0
// What lies in GPU memory before a run: constants of an engine, and contents of an instance.
#include <map>
#include <set>
#include <utility>

#include "base/round.h"
#include "device/cuda/device.h"
#include "ir/shape_values.h"
#include "runtime/execute_cuda.h"

namespace tw::runtime {

namespace {

// Whether a kernel, or the caller, reads the value on the device. Kernels that are loaded know what they have packed.
bool isReadOnDevice(LoadedBlock const& block, ir::Value const* v)
{
    for (LoadedStep const& step : block.steps) {
        ir::Node const& node = *step.node;
        for (size_t i = 0; i < node.inputs.size(); ++i)
            if (node.inputs[i] == v && !step.host && !ir::isShapeInput(node, i) &&
                !(step.kernel && v->isConstant() && !step.kernel->readsOnDevice(i)))
                return true;
    }
    return block.graph->isOutput(v) && !v->host;
}

// Constants by address and bytes.
using Offsets = std::map<std::pair<void const*, int64_t>, int64_t>;

constexpr int64_t kConstantAlignment = 256;

std::pair<void const*, int64_t> keyOf(ir::Value const& v)
{
    return {v.constant->data->data(), ir::extentsOf(v.shape).volume() * sizeOf(v.type)};
}

int64_t padded(int64_t bytes)
{
    return roundUp(bytes, kConstantAlignment);
}

// What `like` holds already is taken from there.
void collectConstants(LoadedBlock& block, LoadedBlock const* like, Offsets& offsets, int64_t& total)
{
    block.deviceConstants.assign(block.values.size(), nullptr);
    block.constantMemory.assign(block.values.size(), nullptr);
    for (size_t i = 0; i < block.values.size(); ++i) {
        ir::Value const* v = block.values[i];
        if (!v->isConstant() || !isReadOnDevice(block, v))
            continue;
        if (like && like->deviceConstants[i] && like->values[i]->constant->data == v->constant->data) {
            block.deviceConstants[i] = like->deviceConstants[i];
            block.constantMemory[i] = like->constantMemory[i];
        } else if (offsets.try_emplace(keyOf(*v), total).second) {
            total += padded(keyOf(*v).second);
        }
    }
    for (size_t i = 0; i < block.steps.size(); ++i)
        for (size_t r = 0; r < block.steps[i].regions.size(); ++r)
            collectConstants(*block.steps[i].regions[r], like ? like->steps[i].regions[r].get() : nullptr, offsets,
                             total);
}

// Places where values that share their bytes lie are written once: `written` are offsets.
Result<void> copyConstants(LoadedBlock& block, Offsets const& offsets,
                           std::shared_ptr<cuda::Buffer const> const& memory, cuda::Driver const& driver,
                           std::set<int64_t>& written)
{
    for (size_t i = 0; i < block.values.size(); ++i) {
        ir::Value const* v = block.values[i];
        auto it = v->isConstant() && !block.deviceConstants[i] ? offsets.find(keyOf(*v)) : offsets.end();
        if (it == offsets.end())
            continue;
        block.deviceConstants[i] = at(memory->data(), it->second);
        block.constantMemory[i] = memory;
        auto const [from, bytes] = it->first;
        if (bytes > 0 && written.insert(it->second).second)
            TW_TRY(cuda::upload(driver, block.deviceConstants[i], from, size_t(bytes)));
    }
    for (LoadedStep& step : block.steps)
        for (auto& region : step.regions)
            TW_TRY(copyConstants(*region, offsets, memory, driver, written));
    return {};
}

} // namespace

Result<void> uploadConstants(LoadedBlock& block, LoadedBlock const* like,
                             std::shared_ptr<cuda::Device const> const& device)
{
    cuda::Current const current(*device);
    Offsets offsets;
    int64_t total = 0;
    collectConstants(block, like, offsets, total);
    TW_ASSIGN(cuda::Buffer memory, cuda::Buffer::allocate(device, total));
    std::set<int64_t> written;
    return copyConstants(block, offsets, std::make_shared<cuda::Buffer>(std::move(memory)), device->driver(), written);
}

namespace {

// Offsets of the contents that kernels read, -1 for the others; returns the bytes.
int64_t placeContents(Instance const& inst, std::vector<int64_t>& offsets)
{
    offsets.assign(inst.values.size(), -1);
    int64_t total = 0;
    for (size_t v = 0; v < inst.values.size(); ++v)
        if (inst.values[v].hasContents && isReadOnDevice(*inst.block, inst.block->values[v])) {
            offsets[v] = total;
            total += padded(inst.values[v].contents.ref().sizeBytes());
        }
    return total;
}

} // namespace

int64_t contentsBytesOnDevice(Instance const& inst)
{
    std::vector<int64_t> offsets;
    int64_t total = placeContents(inst, offsets);
    for (auto const& step : inst.regions)
        for (auto const& region : step)
            total += contentsBytesOnDevice(*region);
    return total;
}

Result<void> uploadContents(Instance& inst, std::shared_ptr<cuda::Device const> const& device)
{
    cuda::Current const current(*device);
    std::vector<int64_t> offsets;
    int64_t const total = placeContents(inst, offsets);
    inst.deviceContents.assign(inst.values.size(), nullptr);
    if (total > 0) {
        TW_ASSIGN(cuda::Buffer memory, cuda::Buffer::allocate(device, total));
        for (size_t v = 0; v < inst.values.size(); ++v) {
            if (offsets[v] < 0)
                continue;
            TensorRef const& t = inst.values[v].contents.ref();
            inst.deviceContents[v] = at(memory.data(), offsets[v]);
            TW_TRY(cuda::upload(device->driver(), inst.deviceContents[v], t.data, size_t(t.sizeBytes())));
        }
        inst.deviceContentsMemory = std::make_shared<cuda::Buffer>(std::move(memory));
    }
    for (auto& step : inst.regions)
        for (auto& region : step)
            TW_TRY(uploadContents(*region, device));
    return {};
}

} // namespace tw::runtime
