// SPDX-License-Identifier: Apache-2.0
#include "api/engine/tensor_records.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tactic/convert_format.h"
#include "tactic/tactic.h"

namespace tw::api {

namespace {

using Json = nlohmann::ordered_json;

// NumPy's format 1.0: a text of the type and the dimensions, padded to a multiple of 64 bytes, then the elements.
std::string npyHeader(DataType type, Extents const& dims)
{
    NumberType const t = numberType(type);
    bool const isLogic = t.kind == NumberKind::kLogic;
    std::string const letter = isFloating(type) ? "f"
                               : isLogic        ? "b"
                               : t.lowest < 0   ? "i"
                                                : "u",
                      name = fmt::format("{}{}{}", t.bits > 8 ? "<" : "|", letter, t.bits / 8);
    std::string text = "{'descr': '" + name + "', 'fortran_order': False, 'shape': (";
    for (int64_t d : dims)
        text += fmt::format("{},", d);
    text += ")}";
    constexpr size_t kMagic = 10, kAlignment = 64;
    text.append(kAlignment - (kMagic + text.size() + 1) % kAlignment, ' ');
    text += '\n';
    std::string head("\x93NUMPY\x01\x00", 8);
    head += char(text.size() & 255);
    head += char(text.size() >> 8);
    return head + text;
}

// Bytes from the first to the last element of a tensor in memory; those of a part do not reach to the whole's end.
int64_t spanOf(TensorRef const& t)
{
    if (t.count() == 0)
        return 0;
    return t.stride > 0 ? (t.place(t.count() - 1) + 1) * sizeOf(t.type) : t.sizeBytes();
}

} // namespace

Result<void> TensorRecords::write(std::string const& name, std::string const& bytes) const
{
    std::filesystem::path const path = std::filesystem::path(folder_) / name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), std::streamsize(bytes.size()));
    file.close();
    if (!file)
        return invalidState("TENSORWRIGHT_RECORD_TENSORS: '{}' cannot be written: {}", path.string(),
                            std::strerror(errno));
    return {};
}

Result<void> TensorRecords::record(runtime::LoadedStep const& step, size_t output)
{
    size_t const v = size_t(step.outputs[output]);
    ir::Value const& value = *instance_.block->values[v];
    TensorRef from = instance_.refs[v];
    if (value.host || value.isConstant() || (!from.data && from.count() > 0))
        return {};
    std::vector<std::byte> copy;
    if (device_ && from.count() > 0) {
        cuda::Driver const& driver = device_->driver();
        copy.resize(size_t(spanOf(from)));
        TW_CUDA(driver, cuMemcpyDtoHAsync(copy.data(), cuda::addressOf(from.data), copy.size(), stream_));
        TW_CUDA(driver, cuStreamSynchronize(stream_));
        from.data = copy.data();
    }
    Tensor rows(from.type, from.dims);
    if (from.count() > 0)
        ops::convertFormat(from, rows.ref());
    if (*numberType(from.type).published == '\0') { // NumPy does not know it either
        Tensor floats(DataType::kFloat, from.dims);
        copyElements(rows.ref(), floats.ref());
        rows = std::move(floats);
    }
    std::string const name = fmt::format("{}.npy", files_++);
    std::string bytes = npyHeader(rows.type(), from.dims);
    bytes.append(static_cast<char const*>(rows.data()), size_t(rows.ref().sizeBytes()));
    TW_TRY(write(name, bytes));
    Json row{{"File", name}, {"Tensor", value.name}, {"Layer", step.node->name}, {"NetworkLayers", step.node->layers}};
    row["Tactic"] = step.tactic ? std::string(step.tactic->name()) : "";
    auto const& scales = engine_.contents().scales; // of the values before any refit, which have the same places
    if (auto const at = scales.find(engine_.block().values[v]); isQuantized(value.type) && at != scales.end())
        row["Scale"] = at->second;
    rows_ += (rows_.empty() ? "" : ",\n") + row.dump(-1, ' ', false, Json::error_handler_t::replace);
    return {};
}

void TensorRecords::recordUpTo(size_t end)
{
    for (; next_ < end; ++next_) {
        runtime::LoadedStep const& step = instance_.block->steps[next_];
        for (size_t i = 0; i < step.outputs.size() && !error_; ++i)
            if (auto done = record(step, i); !done.ok())
                error_ = std::move(done).error();
    }
}

Result<void> TensorRecords::finish()
{
    recordUpTo(instance_.block->steps.size());
    if (error_)
        return *std::move(error_);
    return write("tensors.json", "{\"Tensors\": [\n" + rows_ + "\n]}\n");
}

} // namespace tw::api
