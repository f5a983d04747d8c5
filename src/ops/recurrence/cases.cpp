// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <algorithm>

#include "cases/draw.h"
#include "ops/recurrence/op.h"

namespace tw::ops::recurrence {

namespace {

struct Layer
{
    Attrs attrs;
    int64_t steps = 3, batch = 2, inputs = 4;
    DataType type = DataType::kFloat;
    bool w = true, bias = true, lengths = false, h0 = false, c0 = false, peepholes = false;
    bool known = true; // weights are constants
};

Extents stateOf(Layer const& l)
{
    int64_t const d = directionsOf(l.attrs);
    return l.attrs.batchFirst ? Extents{l.batch, d, l.attrs.hidden} : Extents{d, l.batch, l.attrs.hidden};
}

// All steps, then fewer.
CaseInput lengthsOf(Layer const& l)
{
    std::vector<double> v;
    for (int64_t n = 0; n < l.batch; ++n)
        v.push_back(double(l.steps - 2 * n % (l.steps + 1)));
    return input(DataType::kInt32, {l.batch}, v);
}

void add(CaseList& list, std::string const& name, Layer const& l)
{
    int64_t const d = directionsOf(l.attrs), h = l.attrs.hidden, g = gatesOf(l.attrs.cell) * h;
    auto given = [&](bool present, CaseInput in) { return present ? std::move(in) : absent(); };
    auto weights = [&](Extents const& dims) { return l.known ? constant(l.type, dims) : input(l.type, dims); };
    Extents const x = l.attrs.batchFirst ? Extents{l.batch, l.steps, l.inputs} : Extents{l.steps, l.batch, l.inputs};
    list.add(name, l.attrs,
             {input(l.type, x), weights({d, g, h}), given(l.w, weights({d, g, l.inputs})),
              given(l.bias, weights({d, 2 * g})), given(l.lengths, lengthsOf(l)),
              given(l.h0, input(l.type, stateOf(l))), given(l.c0, input(l.type, stateOf(l))),
              given(l.peepholes, weights({d, 3 * h}))});
}

Attrs cellOf(Cell cell, int64_t hidden = 1, Direction direction = Direction::kForward, bool linearBeforeReset = false)
{
    Attrs a;
    a.cell = cell;
    a.hidden = hidden;
    a.direction = direction;
    a.linearBeforeReset = linearBeforeReset;
    return a;
}

// With functions instead of the default ones.
Attrs cellOf(Cell cell, std::vector<Function> const& functions, std::vector<double> const& alpha,
             std::vector<double> const& beta)
{
    Attrs a = cellOf(cell);
    std::transform(functions.begin(), functions.end(), std::back_inserter(a.functions),
                   [](Function f) { return int64_t(f); });
    a.alpha = alpha;
    a.beta = beta;
    return a;
}

std::string nameOf(Attrs const& a)
{
    static constexpr char const *kCells[] = {"rnn", "lstm", "gru"}, *kDirections[] = {"", "_reverse", "_both"};
    return std::string(kCells[int(a.cell)]) + (a.linearBeforeReset ? "_linear" : "") + kDirections[int(a.direction)] +
           (a.batchFirst ? "_batch_first" : "");
}

// With relu where functions are asked for, so that numbers can be checked by hand: H = E = 1, weights w, r of the gates.
void byHand(CaseList& list)
{
    auto in = [](std::vector<double> const& v) { return f32({int64_t(v.size()), 1, 1}, v); };
    auto row = [](std::vector<double> const& v) { return f32({1, int64_t(v.size())}, v); };
    auto column = [](std::vector<double> const& v) { return f32({1, int64_t(v.size()), 1}, v); };
    Attrs rnn = cellOf(Cell::kRnn, {Function::kRelu}, {0}, {0});
    // h = 2 x + 3 h + 1
    list.add("rnn_by_hand", rnn, {in({1, -5, 2}), column({3}), column({2}), row({0.5, 0.5})}, {{3, 0, 5}, {5}});
    rnn.direction = Direction::kReverse;
    list.add("rnn_reverse_by_hand", rnn, {in({1, -5, 2}), column({3}), column({2}), row({0.5, 0.5})},
             {{21, 6, 5}, {21}});
    list.add("rnn_length_by_hand", rnn,
             {in({1, 4, 2}), column({3}), column({2}), absent(), input(DataType::kInt32, {1}, {2})},
             {{26, 8, 0}, {26}});
    Attrs lstm = cellOf(Cell::kLstm, std::vector<Function>(3, Function::kRelu), {0, 0, 0}, {0, 0, 0});
    // i = x, o = 1, f = 2, c = x + h
    list.add("lstm_by_hand", lstm,
             {in({1, 2}), column({0, 0, 0, 1}), column({1, 0, 0, 1}), row({0, 1, 2, 0, 0, 0, 0, 0}), absent(), absent(),
              f32({1, 1, 1}, {3})},
             {{7, 32}, {32}, {32}});
    // i = x + c = 2, f = 2 + 3 c = 5, c' = 5 + 2, o = 1 + 2 c'
    list.add("lstm_peepholes_by_hand", lstm,
             {in({1}), column({0, 0, 0, 1}), column({1, 0, 0, 1}), row({0, 1, 2, 0, 0, 0, 0, 0}), absent(), absent(),
              f32({1, 1, 1}, {1}), row({1, 2, 3})},
             {{105}, {105}, {7}});
    lstm.inputForget = true;
    lstm.clip = 4;
    // i = min(x, 4), f = 1 - i, g = min(x, 4), o = 1
    list.add("lstm_clip_by_hand", lstm,
             {in({5}), column({0, 0, 0, 1}), column({1, 0, 0, 1}), row({0, 1, 2, 0, 0, 0, 0, 0}), absent(), absent(),
              f32({1, 1, 1}, {2})},
             {{10}, {10}, {10}}); // -3 * 2 + 4 * 4
    Attrs gru = cellOf(Cell::kGru, {Function::kAffine, Function::kRelu}, {1, 0}, {0.5, 0});
    // z = 0.5, r = x + 0.5, n = x + 2 r h + b
    list.add("gru_by_hand", gru,
             {in({1, 2}), column({0, 0, 2}), column({0, 1, 1}), row({0, 0, 0, 0, 0, 1}), absent(), f32({1, 1, 1}, {2})},
             {{5, 16.5}, {16.5}}); // 0.5 * (1 + 6 + 1) + 1; 0.5 * (2 + 25 + 1) + 2.5
    gru.linearBeforeReset = true;
    // n = x + r (2 h + b)
    list.add("gru_linear_by_hand", gru,
             {in({1, 2}), column({0, 0, 2}), column({0, 1, 1}), row({0, 0, 0, 0, 0, 1}), absent(), f32({1, 1, 1}, {2})},
             {{5.25, 18}, {18}}); // 0.5 * (1 + 7.5) + 1; 0.5 * (2 + 28.75) + 2.625
}

std::vector<Attrs> allCells(int64_t hidden)
{
    std::vector<Attrs> out;
    for (Cell cell : {Cell::kRnn, Cell::kLstm, Cell::kGru})
        for (bool linear : {false, true})
            for (Direction d : {Direction::kForward, Direction::kReverse, Direction::kBoth})
                if (!linear || cell == Cell::kGru)
                    out.push_back(cellOf(cell, hidden, d, linear));
    return out;
}

// Every cell and direction with everything that is optional there and not, in both layouts.
void options(CaseList& list)
{
    for (Attrs a : allCells(5))
        for (int bits = 0; bits < 16; ++bits) {
            a.batchFirst = bits & 1;
            Layer const l{.attrs = a,
                          .bias = bool(bits & 2),
                          .lengths = bool(bits & 4),
                          .h0 = bool(bits & 8),
                          .c0 = bits & 8 && a.cell == Cell::kLstm};
            add(list, nameOf(a) + (l.bias ? "_bias" : "") + (l.lengths ? "_lengths" : "") + (l.h0 ? "_state" : ""), l);
        }
}

void sizes(CaseList& list)
{
    for (Attrs a : allCells(1))
        for (int64_t hidden : {1, 7, 8, 15, 16, 17, 31, 33, 40})
            for (int64_t batch : {1, 2, 5}) {
                a.hidden = hidden;
                add(list, fmt::format("{}_h{}_n{}", nameOf(a), hidden, batch),
                    {.attrs = a,
                     .steps = hidden % 2 ? 7 : 1,
                     .batch = batch,
                     .inputs = batch == 2 ? 19 : 3,
                     .lengths = hidden == 17,
                     .h0 = hidden % 3 == 0});
            }
    for (Attrs a : allCells(67))
        for (int64_t batch : {1, 9, 33})
            add(list, fmt::format("{}_wide_n{}", nameOf(a), batch),
                {.attrs = a, .steps = 4, .batch = batch, .inputs = 65, .lengths = batch == 9});
    // Panels that are gone through in parts, and groups of rows.
    for (Attrs const& a : allCells(407))
        for (int64_t batch : {7, 50})
            if (a.direction == Direction::kForward)
                add(list, fmt::format("{}_large_n{}", nameOf(a), batch),
                    {.attrs = a, .steps = 2, .batch = batch, .inputs = 2, .lengths = batch == 7, .h0 = true});
    for (Attrs a : allCells(6)) {
        std::string const name = nameOf(a);
        add(list, name + "_no_steps", {.attrs = a, .steps = 0, .h0 = true});
        add(list, name + "_no_batch", {.attrs = a, .steps = 2, .batch = 0, .h0 = true});
        add(list, name + "_no_inputs", {.attrs = a, .steps = 2, .inputs = 0, .h0 = true});
        add(list, name + "_no_weights", {.attrs = a, .steps = 2, .inputs = 6, .w = false, .h0 = true});
        add(list, name + "_unknown_weights", {.attrs = a, .steps = 2, .inputs = 6, .h0 = true, .known = false});
        Layer half{.attrs = a, .steps = 2, .inputs = 6, .type = DataType::kHalf, .lengths = true, .h0 = true};
        add(list, name + "_half", half);
        half.w = false;
        half.attrs.batchFirst = true;
        add(list, name + "_half_no_weights", half);
    }
}

void lstmOptions(CaseList& list)
{
    for (int bits = 1; bits < 16; ++bits) {
        Layer l{.attrs = cellOf(Cell::kLstm, 9, bits & 8 ? Direction::kBoth : Direction::kForward),
                .lengths = bool(bits & 2),
                .h0 = true,
                .c0 = true,
                .peepholes = bool(bits & 4)};
        l.attrs.inputForget = bits & 1;
        l.attrs.clip = bits & 2 ? 0.4 : 0;
        add(list, fmt::format("{}_option_{}", nameOf(l.attrs), bits), l);
        l.type = DataType::kHalf;
        add(list, fmt::format("{}_half_option_{}", nameOf(l.attrs), bits), l);
    }
    add(list, "lstm_cell_state", {.attrs = cellOf(Cell::kLstm, 4), .c0 = true}); // and no hidden state
}

// Hidden sizes that blocks of a GPU share, whole and not whole rows of 16 bytes, batches of all tiles.
void shared(CaseList& list)
{
    int at = 0;
    for (auto const& [hidden, batch] :
         {std::pair{128, 1}, {128, 33}, {132, 3}, {260, 8}, {512, 1}, {512, 32}, {1024, 1}, {1024, 3}})
        for (Cell cell : {Cell::kLstm, Cell::kGru, Cell::kRnn}) {
            Layer l{.attrs = cellOf(cell, hidden, Direction(at % 3), at / 3 % 2 == 0),
                    .steps = 4,
                    .batch = batch,
                    .inputs = at % 2 ? 24 : 33,
                    .type = at % 4 < 2 ? DataType::kHalf : DataType::kFloat,
                    .lengths = at % 3 != 1,
                    .h0 = at % 5 != 0,
                    .c0 = at % 5 != 0 && cell == Cell::kLstm};
            l.attrs.batchFirst = at % 2;
            if (hidden < 1024 || cell != Cell::kGru)
                add(list, fmt::format("{}_shared_h{}_n{}", nameOf(l.attrs), hidden, batch), l);
            ++at;
        }
}

// Cells whose recurrent weights fit into registers: of a block, of a cluster, of all multiprocessors; groups of sequences
// that are not full, warps and blocks that have few units or none.
void inRegisters(CaseList& list)
{
    struct Size
    {
        int64_t hidden, batch;
        Cell cell;
        Direction direction;
    };
    for (Size const size : {Size{72, 5, Cell::kLstm, Direction::kBoth},
                            {96, 9, Cell::kGru, Direction::kReverse},
                            {136, 17, Cell::kLstm, Direction::kForward},
                            {200, 40, Cell::kGru, Direction::kBoth},
                            {296, 2, Cell::kLstm, Direction::kBoth},
                            {520, 33, Cell::kRnn, Direction::kReverse},
                            {768, 12, Cell::kGru, Direction::kForward},
                            {1000, 19, Cell::kLstm, Direction::kReverse},
                            {1024, 32, Cell::kGru, Direction::kForward}}) {
        bool const isLstm = size.cell == Cell::kLstm;
        Layer l{.attrs = cellOf(size.cell, size.hidden, size.direction, size.cell == Cell::kGru),
                .steps = size.hidden < 512 ? 7 : 4, // what the largest compute at once costs seconds a step
                .batch = size.batch,
                .inputs = 40,
                .type = DataType::kHalf,
                .lengths = size.direction != Direction::kForward,
                .h0 = size.hidden % 16 != 0,
                .c0 = size.hidden % 16 != 0 && isLstm,
                .peepholes = isLstm && size.hidden < 200};
        l.attrs.inputForget = size.hidden == 136;
        l.attrs.clip = size.batch == 9 ? 0.7 : 0;
        add(list, fmt::format("{}_registers_h{}_n{}", nameOf(l.attrs), size.hidden, size.batch), l);
    }
}

// More steps than products of x are computed for at once, in every order of steps and layout.
void longer(CaseList& list)
{
    for (Attrs a : allCells(67))
        for (int bits = 0; bits < 4; ++bits) {
            a.batchFirst = bits & 1;
            add(list, fmt::format("{}_longer_{}", nameOf(a), bits),
                {.attrs = a,
                 .steps = a.cell == Cell::kRnn ? 101 : 23, // no multiple of what fits
                 .batch = 33,
                 .inputs = 67,
                 .w = bits != 3,
                 .lengths = bool(bits & 2),
                 .h0 = bits == 1});
        }
}

// Each function in each place; a jump would make a difference of rounding errors.
void functions(CaseList& list)
{
    for (Attrs a : allCells(6))
        for (int f = 0; f < kFunctions; ++f) {
            if (Function(f) == Function::kThresholdedRelu || a.direction == Direction::kReverse)
                continue;
            int const count = functionsOf(a.cell) * directionsOf(a);
            for (int i = 0; i < count; ++i) {
                a.functions.push_back((f + i) % kFunctions);
                if (Function(a.functions.back()) == Function::kThresholdedRelu)
                    a.functions.back() = int64_t(Function::kElu);
                a.alpha.push_back(0.3 + 0.1 * i);
                a.beta.push_back(0.6 - 0.1 * i);
            }
            if (f % 2)
                a.clip = 0.5;
            add(list, fmt::format("{}_function_{}", nameOf(a), f), {.attrs = a, .h0 = true});
            a.functions.clear();
            a.alpha.clear();
            a.beta.clear();
        }
    list.add("thresholded_relu", cellOf(Cell::kRnn, {Function::kThresholdedRelu}, {1}, {0}),
             {f32({4, 1, 1}, {2, 0.5, 1, 3}), f32({1, 1, 1}, {0.25}), f32({1, 1, 1}, {1})}, {{2, 0, 0, 3}, {3}});
}

} // namespace

void cases(CaseList& list)
{
    byHand(list);
    options(list);
    sizes(list);
    longer(list);
    shared(list);
    inRegisters(list);
    lstmOptions(list);
    functions(list);
    Attrs a = cellOf(Cell::kLstm, 3);
    a.batchFirst = true;
    list.add("more_batches", a,
             {f32({2, 3, 4, 2}), f32({1, 12, 3}), f32({1, 12, 2}), absent(), input(DataType::kInt32, {2, 3}),
              f32({2, 3, 1, 3}), f32({2, 3, 1, 3})});
    list.add("no_batches", a,
             {f32({4, 2}), f32({1, 12, 3}), f32({1, 12, 2}), absent(), input(DataType::kInt32, {}, {3})});
    list.add("lengths_outside", a,
             {f32({3, 4, 2}), f32({1, 12, 3}), f32({1, 12, 2}), absent(), input(DataType::kInt32, {3}, {-2, 9, 4})});
}

namespace {

Attrs attrsOf(Draw& d)
{
    Attrs a;
    a.cell = Cell(d.from(0, 2));
    a.direction = Direction(d.from(0, 2));
    a.hidden = d.size(48);
    a.linearBeforeReset = d.chance(50);
    a.inputForget = a.cell == Cell::kLstm && d.chance(20);
    a.clip = d.chance(20) ? 0.7 : 0;
    a.batchFirst = d.chance(50);
    for (int i = 0, n = d.chance(25) ? functionsOf(a.cell) * directionsOf(a) : 0; i < n; ++i) {
        int64_t const f = d.from(0, kFunctions - 1);
        a.functions.push_back(Function(f) == Function::kThresholdedRelu ? int64_t(Function::kRelu) : f);
        a.alpha.push_back(0.4);
        a.beta.push_back(0.7);
    }
    return a;
}

} // namespace

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a = attrsOf(d);
    bool const skips = d.chance(10), lstm = a.cell == Cell::kLstm;
    int64_t const n = d.from(1, 9), t = d.from(1, 6), e = skips ? a.hidden : d.size(40), h = a.hidden,
                  both = directionsOf(a), g = gatesOf(a.cell) * h;
    DataType const type = d.type();
    auto given = [&](bool possible, CaseInput in) { return possible && d.chance(50) ? std::move(in) : absent(); };
    Extents const state = a.batchFirst ? Extents{n, both, h} : Extents{both, n, h};
    CaseInput w = skips ? absent() : constant(type, {both, g, e}), r = constant(type, {both, g, h});
    w.constant = r.constant = d.chance(80);
    list.add(name, a,
             {input(type, a.batchFirst ? Extents{n, t, e} : Extents{t, n, e}), r, w,
              given(true, constant(type, {both, 2 * g})), given(true, input(DataType::kInt32, {n})),
              given(true, input(type, state)), given(lstm, input(type, state)),
              given(lstm, constant(type, {both, 3 * h}))});
}

} // namespace tw::ops::recurrence
