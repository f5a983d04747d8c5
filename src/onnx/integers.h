// SPDX-License-Identifier: Apache-2.0
// Integers that the API has no type for. Where layers compute with them they are INT32. UINT8 is a type of inputs and outputs
// of the network; between the operators of a quantized model, UINT8 and INT8 values are in one of these forms:
//
//   kINT32, kFLOAT   the numbers
//   kINT8            the numbers of INT8; those of UINT8 less 128, so that layers on INT8 take them
//
// Value::integers() says which type of the model it is.
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

struct IntegerRange
{
    int bits = 32;
    double lowest = -2147483648.0, largest = 2147483647.0; // as far as INT32 has them
};
IntegerRange rangeOf(Integers integers);
char const* nameOf(Integers integers);

// The numbers of a value, whatever its form.
ITensor& wholeFloats(ImportContext& ctx, Value const& v);
ITensor& wholeIntegers(ImportContext& ctx, Value const& v);
// What goes in and out of loops and conditionals: a tensor, of other integers as kINT32.
ITensor& plainTensor(ImportContext& ctx, Value const& v);
// x, kINT32, reduced to the type as arithmetic of its width does it.
ITensor& wrapped(ImportContext& ctx, ITensor& x, Integers integers);
// What leaves the network as kUINT8.
ITensor& asUint8(ImportContext& ctx, Value const& v);

// INT8 and UINT8 as kINT8: the number, or the number less 128.
ITensor& asInt8(ImportContext& ctx, Value const& v);

// What an operator's importer takes.
enum class IntegerForm
{
    kInt32,
    kFloat,      // its layer has no kINT32
    kMoved,      // any form but kUINT8, as long as it is that of all inputs, else kINT32
    kMovedFloat, // any form but those of kUINT8 and kINT32, as long as it is that of all inputs, else kFLOAT
    kAny         // the importer asks for what it needs
};
IntegerForm formTaken(std::string const& opType);
// The integers of an output, where the importer does not say.
Integers resultIntegers(ImportContext const& ctx, int output);
// Results may leave a small type and are then wrapped.
bool leavesRange(std::string const& opType);

} // namespace tw::onnx
