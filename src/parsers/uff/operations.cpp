// SPDX-License-Identifier: Apache-2.0
#include "parsers/uff/operations.h"

#include <algorithm>

#include "parsers/uff/constants.h"
#include "parsers/uff/model.h"
#include "tw_uff.pb.h"

namespace tw::uff {

namespace {

struct OperationRow
{
    char const* name;
    Operation run;
};
constexpr OperationRow kOperations[] = {
    {"Input", importInput},
    {"Const", importConst},
    {"Identity", importIdentity},
    {"MarkOutput", importIdentity},
    {"Conv", importConv},
    {"ConvTranspose", importConvTranspose},
    {"Pool", importPool},
    {"FullyConnected", importFullyConnected},
    {"Binary", importBinary},
    {"Unary", importUnary},
    {"Activation", importActivation},
    {"LeakyRelu", importLeakyRelu},
    {"Softmax", importSoftmax},
    {"Batchnorm", importBatchnorm},
    {"LRN", importLrn},
    {"Reduce", importReduce},
    {"ArgMax", importArgMax},
    {"ArgMin", importArgMin},
    {"Reshape", importReshape},
    {"Flatten", importFlatten},
    {"Transpose", importTranspose},
    {"Squeeze", importSqueeze},
    {"ExpandDims", importExpandDims},
    {"Shape", importShape},
    {"Concat", importConcat},
    {"Stack", importStack},
    {"StridedSlice", importStridedSlice},
    {"Pad", importPad},
    {"GatherV2", importGather},
};

// Channels first of channels last.
std::vector<int> lastFirst(int rank)
{
    std::vector<int> order = allAxes(rank - 1);
    order.insert(order.begin(), rank - 1);
    return order;
}

Dims taken(Dims const& dims, std::vector<int> const& order)
{
    Dims y{dims.nbDims, {}};
    for (size_t i = 0; i < order.size(); ++i)
        y.d[i] = dims.d[order[i]];
    return y;
}

} // namespace

Operation findOperation(std::string const& name, Model const& model)
{
    if (name.starts_with('_'))
        return findCreator(name, model.pluginNamespace()) ? importPlugin : nullptr;
    auto const* const row = std::ranges::find_if(kOperations, [&](OperationRow const& r) { return name == r.name; });
    return row == std::end(kOperations) ? nullptr : row->run;
}

// Inputs of the network are C H W. In which order the graph has their axes say the nodes that read them; where none does, what
// the client registered.
void importInput(UffNode& n)
{
    constexpr int64_t kNone = 0;
    int64_t const number = n.attrInt("dtype", kNone);
    if (!contains(std::vector<int64_t>{kNone, kInt32, kInt64, kFloat16, kFloat32}, number))
        n.fail(fmt::format("an input of element type 0x{:x} cannot be imported; FLOAT32, FLOAT16, INT32 and INT64 can",
                           number));
    if (number == kFloat16 || number == kInt64)
        n.warn(fmt::format("the input has another type in the file; in the network it is {}",
                           number == kFloat16 ? "FP32" : "INT32"));
    std::vector<int64_t> const shape = n.attrInts("shape");
    Request const* const asked = n.model().requestFor(n.name());
    Dims dims{0, {}};
    if (asked) {
        dims = asked->dims;
    } else if (shape.size() > 1 && shape.size() <= size_t(Dims::MAX_DIMS)) {
        dims = makeDims({shape.begin() + 1, shape.end()});
    }
    int const rank = dims.nbDims;
    if (rank < 1)
        n.invalid(fmt::format("Invalid number of Dimensions {}: register the input", rank));
    constexpr int kImage = 3; // and more: volumes
    std::vector<int> order = allAxes(rank);
    bool const isImage = rank >= kImage;
    bool const isLast = !asked || asked->order == nvuffparser::UffInputOrder::kNHWC; // dims are in that order
    if (isImage) {
        order = n.model().orderFromReaders(n.name(), rank);
        if (order.empty()) {
            // The file's own shape tells them apart, where it is not the one that was registered.
            auto const isShape = [&](Dims const& d) {
                return shape.size() == size_t(rank) + 1 && std::equal(d.d, d.d + rank, shape.begin() + 1);
            };
            bool const saysLast = asked && !isLast && !isShape(dims) && isShape(taken(dims, inverse(lastFirst(rank))));
            order = (asked && isLast) || saysLast ? lastFirst(rank) : allAxes(rank);
        }
        if (!asked)
            dims = taken(dims, order);
        else if (isLast)
            dims = taken(dims, lastFirst(rank));
    }
    bool const isWhole = number == kInt32 || number == kInt64;
    ITensor* const t = n.network().addInput(n.name().c_str(), isWhole ? DataType::kINT32 : DataType::kFLOAT, dims);
    if (!t)
        n.refused(fmt::format("the network refused the input of shape {}", describe(dims)));
    n.give(*t, {.order = order});
}

} // namespace tw::uff
