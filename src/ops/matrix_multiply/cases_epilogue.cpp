// SPDX-License-Identifier: Apache-2.0
// Cases of matrix products with biases, residuals and activations.
#include "cases/programs.h"
#include "ops/matrix_multiply/cases.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

void epilogueCases(CaseList& list)
{
    using enum MatrixOperation;
    using activation::Kind;
    auto add = [&](std::string const& name, MatrixOperation opA, MatrixOperation opB, FusedActivation f,
                   std::vector<CaseInput> in, std::vector<std::vector<double>> expected = {}) {
        list.add("epilogue_" + name, Attrs(opA, opB, f), std::move(in), std::move(expected));
    };
    auto weights = [](Extents const& e, std::vector<double> v = {}) {
        return constant(DataType::kFloat, e, std::move(v));
    };
    // The product is [5 -1; 14 -1].
    CaseInput const a23 = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b32 = weights({3, 2}, {1, 0, 2, 1, 0, -1});
    add("bias_relu_by_hand", kNone, kNone, Kind::kRelu, {a23, b32, weights({2}, {-6, 3})}, {{0, 2, 8, 2}});
    add("bias_by_hand", kNone, kNone, {}, {a23, b32, weights({2}, {-6, 3})}, {{-1, 2, 8, 2}});
    add("relu_by_hand", kNone, kNone, Kind::kRelu, {a23, b32}, {{5, 0, 14, 0}});
    for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
        FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
        add(fmt::format("kind{}", k + 1), kNone, kTranspose, f, {f32({5, 19}), weights({33, 19}), weights({33})});
    }
    for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
        FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
        int64_t const m = (k + 4) % 4 + 1, n = k % 3 == 0 ? 128 : 139;
        add(fmt::format("few_rows_kind{}", k + 1), kNone, kNone, f,
            {f32({m, 19}), weights({19, n}), weights({n}), f32({m, n})});
    }
    add("few_rows_dots", kNone, kTranspose, FusedActivation(FusedKind::kGeluErf),
        {f32({2, 50}), f32({75, 50}), f32({75}), f32({2, 75})});
    add("few_rows_residual", kNone, kTranspose, {}, {f32({3, 19}), weights({75, 19}), absent(), f32({3, 75})});
    for (auto opA : {kNone, kTranspose})
        for (auto opB : {kNone, kTranspose}) {
            std::string const ops = std::string(opA == kTranspose ? "t" : "n") + (opB == kTranspose ? "t" : "n");
            add("column_" + ops, opA, opB, Kind::kTanh,
                {f32(opA == kTranspose ? Extents{40, 9} : Extents{9, 40}),
                 weights(opB == kTranspose ? Extents{1, 40} : Extents{40, 1}), weights({1})});
            add("batch_" + ops, opA, opB, Kind::kRelu,
                {f32(opA == kTranspose ? Extents{3, 2, 19, 6} : Extents{3, 2, 6, 19}),
                 weights(opB == kTranspose ? Extents{1, 1, 11, 19} : Extents{1, 1, 19, 11}), weights({11})});
        }
    add("residual_by_hand", kNone, kNone, Kind::kRelu, {a23, b32, weights({2}, {-6, 3}), f32({2, 2}, {2, -4, -9, 1})},
        {{1, 0, 0, 3}});
    add("residual_no_bias", kNone, kNone, {}, {f32({7, 40}), weights({40, 33}), absent(), f32({7, 33})});
    add("residual_batch", kNone, kTranspose, {},
        {f32({2, 17, 40}), weights({1, 65, 40}), weights({65}), f32({2, 17, 65})});
    add("residual_vector_b", kNone, kVector, Kind::kTanh, {f32({9, 33}), weights({33}), absent(), f32({9})});
    add("residual_half", kNone, kNone, Kind::kTanh,
        {input(DataType::kHalf, {7, 20}), constant(DataType::kHalf, {20, 300}), constant(DataType::kHalf, {300}),
         input(DataType::kHalf, {7, 300})});
    add("half", kNone, kNone, Kind::kSigmoid,
        {input(DataType::kHalf, {7, 20}), constant(DataType::kHalf, {20, 300}), constant(DataType::kHalf, {300})});
    for (DataType type : {DataType::kHalf, DataType::kFloat}) {
        auto on = [&](std::string const& name, MatrixOperation opA, MatrixOperation opB, FusedActivation f,
                      std::vector<CaseInput> in) { add(wordOf(type) + "_" + name, opA, opB, f, std::move(in)); };
        auto x = [&](Extents const& e) { return input(type, e); };
        auto w = [&](Extents const& e) { return constant(type, e); };
        for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
            FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
            // Numbers of 4 bits: factors that are rounded stay what they are, however small results become.
            auto coarse = [](Extents const& e, int step) {
                std::vector<double> v;
                for (int64_t i = 0; i < e.volume(); ++i)
                    v.push_back(double(i * step % 17 - 8) / 16);
                return v;
            };
            CaseInput const a = input(type, {9, 72}, coarse({9, 72}, 5)),
                            b = constant(type, {40, 72}, coarse({40, 72}, 7));
            on(fmt::format("kind{}", k + 1), kNone, kTranspose, f, {a, b, w({40})});
        }
        // Beside a residual, before and after whole tiles; batches that are rows, batches that are not.
        on("residual", kNone, kNone, Kind::kRelu, {x({131, 200}), w({200, 136}), w({136}), x({131, 136})});
        on("residual_steps", kNone, kTranspose, {}, {x({70, 1024}), w({264, 1024}), w({264}), x({70, 264})});
        on("residual_odd", kNone, kNone, FusedActivation(FusedKind::kGeluErf),
           {x({70, 200}), w({200, 131}), w({131}), x({70, 131})});
        on("residual_few_rows", kNone, kNone, Kind::kRelu, {x({7, 520}), w({520, 328}), w({328}), x({7, 328})});
        on("residual_batch", kNone, kTranspose, FusedActivation(FusedKind::kSwish),
           {x({2, 67, 72}), w({1, 72, 72}), w({72}), x({2, 67, 72})});
        on("batch", kTranspose, kNone, FusedActivation(FusedKind::kGeluTanh),
           {x({3, 72, 64}), x({3, 72, 40}), w({40}), x({3, 64, 40})});
        on("gelu", kNone, kNone, FusedActivation(FusedKind::kGeluErf), {x({260, 72}), w({72, 264}), w({264})});
        on("no_bias", kNone, kNone, Kind::kRelu, {x({70, 72}), w({72, 64})});
        on("bias_not_constant", kNone, kTranspose, Kind::kElu, {x({9, 40}), x({37, 40}), x({37})});
        on("residual_rows_of_2", kTranspose, kTranspose, Kind::kRelu,
           {x({71, 130}), x({37, 71}), w({37}), x({130, 37})});
        on("residual_batch_odd", kNone, kNone, {}, {x({3, 17, 64}), w({3, 64, 37}), w({37}), x({3, 17, 37})});
    }
    add("vector_a", kVector, kNone, Kind::kRelu, {f32({33}), weights({33, 9}), weights({9})});
    add("vector_b", kNone, kVector, Kind::kRelu, {f32({9, 33}), weights({33})});
    add("wide", kNone, kNone, Kind::kRelu, {f32({3, 40}), weights({40, 521}), weights({521})});
    add("rows_of_batch", kNone, kNone, Kind::kSigmoid, {f32({2, 9, 40}), weights({1, 40, 70}), weights({70})});
    add("bias_not_constant", kNone, kTranspose, Kind::kElu, {f32({9, 40}), f32({37, 40}), f32({37})});
    add("inner_huge", kNone, kNone, Kind::kLeakyRelu, {f32({2, 5001}), weights({5001, 33}), weights({33})});
    add("no_rows", kNone, kNone, Kind::kRelu, {f32({0, 4}), weights({4, 3}), weights({3})});
    add("no_inner", kNone, kNone, Kind::kRelu, {f32({2, 0}), weights({0, 3}), weights({3})});
}

// Expressions behind each kind of kernel.
void programCases(CaseList& list)
{
    struct Layer
    {
        char const* name;
        Extents x, w, y;
        bool connected = false;
    };
    Layer const layers[] = {{"tails", {33, 40}, {40, 75}, {33, 75}},
                            {"few_rows", {3, 64}, {64, 139}, {3, 139}},
                            {"rows", {128, 64}, {64, 128}, {128, 128}},
                            {"batch", {2, 17, 40}, {1, 40, 65}, {2, 17, 65}},
                            {"connected", {6, 8, 5, 5}, {72, 200}, {6, 72, 1, 1}, true}};
    int turn = 0; // a third of them in FP16
    for (Layer const& l : layers)
        for (EpilogueProgram const& program : epiloguePrograms())
            for (DataType t : {DataType::kFloat, DataType::kHalf}) {
                if (isNarrowFloat(t) && turn++ % 3 != 0)
                    continue;
                Attrs a = l.connected ? Attrs::fullyConnected() : Attrs();
                program.setTo(a.epilogue);
                std::vector<CaseInput> in{input(t, l.x), constant(t, l.w),
                                          constant(t, {l.connected ? l.y[1] : l.y[l.y.rank - 1]})};
                if (program.residual)
                    in.push_back(input(t, l.y));
                list.add(std::string("steps_") + wordOf(t) + "_" + l.name + "_" + program.name, a, in);
            }
}

} // namespace tw::ops::matrix_multiply
