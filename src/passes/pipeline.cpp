// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "ir/text.h"
#include "passes/list.h"
#include "recipe/recipes.h"

namespace tw::passes {

std::vector<Pass> const& pipeline()
{
    using ir::Form;
    // The canonical passes make work for each other: they run again until none changes anything.
    static std::vector<Pass> const list = {
        {"widen_half", widenHalf, Form::kImported, Form::kImported, 0},
        {"remove_dead", removeDead, Form::kImported, Form::kImported, 1},
        {"fuse_unrolled_recurrence", fuseUnrolledRecurrence, Form::kImported, Form::kImported, 1},
        {"fold_constants", foldConstants, Form::kImported, Form::kImported, 1},
        {"capture_carried", captureCarried, Form::kImported, Form::kImported, 1},
        {"constants_into_regions", constantsIntoRegions, Form::kImported, Form::kImported, 1},
        {"inline_regions", inlineRegions, Form::kImported, Form::kImported, 1},
        {"fuse_scatter_reduction", fuseScatterReduction, Form::kImported, Form::kImported, 1},
        {"index_rows", indexRows, Form::kImported, Form::kImported, 1},
        {"gather_to_reshape", gatherToReshape, Form::kImported, Form::kImported, 1},
        {"hoist_invariants", hoistInvariants, Form::kImported, Form::kImported, 1},
        {"count_conditions", countConditions, Form::kImported, Form::kImported, 1},
        {"iterate_gathers", iterateGathers, Form::kImported, Form::kImported, 1},
        {"share_nodes", shareNodes, Form::kImported, Form::kImported, 1},
        {"simplify_shapes", simplifyShapes, Form::kImported, Form::kImported, 1},
        {"drop_expansions", dropExpansions, Form::kImported, Form::kImported, 1},
        {"scatter_to_concatenation", scatterToConcatenation, Form::kImported, Form::kImported, 1},
        {"rows_to_cache_update", rowsToCacheUpdate, Form::kImported, Form::kImported, 1},
        {"window_scores", windowScores, Form::kImported, Form::kImported, 1},
        {"heads_apart", headsApart, Form::kImported, Form::kImported, 1},
        {"join_masks", joinMasks, Form::kImported, Form::kImported, 1},
        {"expand_powers", expandPowers, Form::kImported, Form::kImported, 1},
        {"join_integer_sums", joinIntegerSums, Form::kImported, Form::kImported, 1},
        {"fuse_cumulative_sum", fuseCumulativeSum, Form::kImported, Form::kImported, 1},
        {"fuse_recurrence", fuseRecurrence, Form::kImported, Form::kImported, 1},
        {"move_zero_points", moveZeroPoints, Form::kImported, Form::kImported, 1},
        {"move_quantization", moveQuantization, Form::kImported, Form::kImported, 1},
        {"remove_identities", removeIdentities, Form::kImported, Form::kCanonical, 1},
        // After the last of them nothing is dead but what the fusions leave; they leave nothing.
        {"remove_dead_rows", removeDeadRows, Form::kCanonical, Form::kCanonical, 0},
        {"keep_integer_weights", keepIntegerWeights, Form::kCanonical, Form::kCanonical, 0},
        {"sequences_as_images", sequencesAsImages, Form::kCanonical, Form::kCanonical, 0},
        {"fold_padding", foldPadding, Form::kCanonical, Form::kCanonical, 0},
        {"fold_scale_into_convolution", foldScaleIntoConvolution, Form::kCanonical, Form::kCanonical, 0},
        {"fuse_layer_norm", fuseLayerNorm, Form::kCanonical, Form::kCanonical, 0},
        {"fuse_rotary", fuseRotary, Form::kCanonical, Form::kCanonical, 0},
        {"fuse_attention", fuseAttention, Form::kCanonical, Form::kCanonical, 0},
        {"narrow_caches", narrowCaches, Form::kCanonical, Form::kCanonical, 0},
        {"packed_rows", packedRows, Form::kCanonical, Form::kCanonical, 0},
        {"batches_first", batchesFirst, Form::kCanonical, Form::kCanonical, 0},
        {"cancel_movements", cancelMovements, Form::kCanonical, Form::kCanonical, 0},
        {"pixels_to_rows", pixelsToRows, Form::kCanonical, Form::kCanonical, 0},
        {"fuse_shuffle_reduce", fuseShuffleReduce, Form::kCanonical, Form::kCanonical, 2},
        {"fuse_reduce", fuseReduce, Form::kCanonical, Form::kCanonical, 2},
        {"fuse_log_softmax", fuseLogSoftmax, Form::kCanonical, Form::kCanonical, 0},
        {"sink_reshapes", sinkReshapes, Form::kCanonical, Form::kCanonical, 0},
        {"patches_to_matmul", patchesToMatmul, Form::kCanonical, Form::kCanonical, 0},
        {"convolution_to_matmul", convolutionToMatmul, Form::kCanonical, Form::kCanonical, 0},
        {"transposed_to_pixels", transposedToPixels, Form::kCanonical, Form::kCanonical, 0},
        {"split_multiplied_depthwise", splitMultipliedDepthwise, Form::kCanonical, Form::kCanonical, 0},
        {"merge_matmuls", mergeMatmuls, Form::kCanonical, Form::kCanonical, 0},
        {"merge_unrolled_products", mergeUnrolledProducts, Form::kCanonical, Form::kCanonical, 0},
        {"merge_convolutions", mergeConvolutions, Form::kCanonical, Form::kCanonical, 0},
        {"join_functions", joinFunctions, Form::kCanonical, Form::kCanonical, 0},
        {"sum_into_scatter", sumIntoScatter, Form::kCanonical, Form::kCanonical, 0},
        {"activation_before_movement", activationBeforeMovement, Form::kCanonical, Form::kCanonical, 0},
        {"fuse_activation", fuseActivation, Form::kCanonical, Form::kFused, 0},
        {"fuse_gate", fuseGate, Form::kFused, Form::kFused, 0},
        {"quantize_ranges", quantizeRanges, Form::kFused, Form::kFused, 0, true, wantsIntegers},
        {"fuse_quantization", fuseQuantization, Form::kFused, Form::kFused, 0},
        {"multiply_by_reciprocals", multiplyByReciprocals, Form::kFused, Form::kFused, 0},
        {"fuse_pointwise", fusePointwise, Form::kFused, Form::kFused, 0}, // what no other fusion took
        {"fuse_byte_tables", fuseByteTables, Form::kFused, Form::kFused, 0},
        {"fuse_expanded_depthwise", fuseExpandedDepthwise, Form::kFused, Form::kFused, 0, true},
        {"fuse_epilogue", fuseEpilogue, Form::kFused, Form::kFused, 0},
        {"copy_constant_activations", copyConstantActivations, Form::kFused, Form::kFused, 0},
        {"round_to_half", roundToHalf, Form::kFused, Form::kFused, 0},
        {"lower_precision", lowerPrecision, Form::kFused, Form::kFused, 0},
        // Where the clock chooses types, the builder runs what stands from here on again.
        {"fuse_norm_matmul", fuseNormMatmul, Form::kFused, Form::kFused, 0},
        {"weights_by_columns", weightsByColumns, Form::kFused, Form::kFused, 0},
        {"fuse_matmul_norm", fuseMatmulNorm, Form::kFused, Form::kFused, 0},
        {"fuse_result_quantization", fuseResultQuantization, Form::kFused, Form::kFused, 0},
        {"fuse_append_attention", fuseAppendAttention, Form::kFused, Form::kFused, 0},
        {"share_constants", shareConstants, Form::kFused, Form::kFused, 0},
    };
    return list;
}

namespace {

// Networks settle after two or three rounds; a pair of passes that undo each other must not hang the build.
constexpr int kMaxRounds = 8;

void raiseForm(ir::Graph& g, ir::Form form)
{
    g.form = std::max(g.form, form);
    for (auto& n : g.nodes)
        for (auto& r : n->regions)
            raiseForm(*r, form);
}

// Inner graphs first: what becomes unused there frees captures of the outer one.
Result<bool> runOn(ir::Graph& g, Pass const& pass, PassContext const& ctx)
{
    bool changed = false;
    for (auto& n : g.nodes)
        for (auto& r : n->regions) {
            TW_ASSIGN(bool const inner, runOn(*r, pass, ctx));
            changed = changed || inner;
        }
    TW_ASSIGN(bool const outer, pass.run(g, ctx));
    return changed || outer;
}

class Runner
{
public:
    Runner(ir::Graph& g, PassContext const& ctx, Options const& options) : g_(g), ctx_(ctx), options_(options) {}

    Result<std::vector<Alternative>> run()
    {
        auto const& list = pipeline();
        for (std::string const& name : options_.startAt.empty() ? options_.disabled : std::vector<std::string>())
            if (std::ranges::none_of(list, [&](Pass const& p) { return p.name == name; }))
                ctx_.log.warning("there is no pass '{}' to leave out", name);
        size_t first = 0;
        for (size_t i = 0; i < list.size(); ++i)
            first = list[i].name == options_.startAt ? i : first;
        TW_TRY(runFrom(first));
        std::vector<Alternative> out;
        for (Left& left : left_) {
            Options options = options_;
            options.dumpFolder = nullptr;
            options.givesAlternatives = false;
            std::unique_ptr<ir::Graph> graph = left.graph->clone();
            NullLog quiet;
            PassContext const context{ctx_, quiet};
            Runner rest(*graph, context, options);
            rest.done_ = left.done;
            TW_TRY(rest.runFrom(left.next));
            out.push_back({left.without, std::move(graph), std::move(left.graph)});
        }
        return out;
    }

private:
    // The graph before a speculative pass that changed it.
    struct Left
    {
        char const* without;
        std::unique_ptr<ir::Graph> graph;
        size_t next; // pass
        int done;
    };

    Result<void> runFrom(size_t first)
    {
        auto const& list = pipeline();
        for (size_t begin = first; begin < list.size() && list[begin].name != options_.stopBefore;) {
            size_t end = begin + 1;
            while (list[begin].group != 0 && end < list.size() && list[end].group == list[begin].group)
                ++end;
            int const rounds = list[begin].group != 0 ? kMaxRounds : 1;
            for (int round = 0; round < rounds; ++round) {
                bool changed = false;
                for (size_t p = begin; p < end; ++p) {
                    if (stopped())
                        return {};
                    TW_ASSIGN(bool const passChanged, runOne(p));
                    changed = changed || passChanged;
                }
                if (!changed)
                    break;
            }
            begin = end;
        }
        return {};
    }

    bool stopped() const { return options_.stopAfter >= 0 && done_ >= options_.stopAfter; }

    Result<bool> runOne(size_t index)
    {
        Pass const& p = pipeline()[index];
        ++done_;
        if (contains(options_.disabled, p.name))
            return false;
        bool const isOpen = options_.givesAlternatives && p.isSpeculative && !(p.isWanted && p.isWanted(g_, ctx_));
        std::unique_ptr<ir::Graph> before = isOpen ? g_.clone() : nullptr;
        auto const begin = std::chrono::steady_clock::now();
        recipe::Recipes::Watch watch(ctx_.recipes, g_);
        auto changed = runOn(g_, p, ctx_);
        if (!changed.ok())
            return std::move(changed).error().in(std::string("pass ") + p.name);
        if (*changed)
            watch.finish();
        raiseForm(g_, p.gives);
        if (!*changed)
            return false;
        if (before) {
            raiseForm(*before, p.gives);
            left_.push_back({p.name, std::move(before), index + 1, done_});
        }
        double const ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
        ctx_.log.verbose("pass {}: {} nodes, {} ms", p.name, g_.nodes.size(), ms);
        if (options_.dumpFolder)
            dump(p.name);
        if (options_.verifyEach)
            if (auto verified = ir::verify(g_); !verified.ok())
                return std::move(verified).error().in(std::string("after pass ") + p.name);
        return true;
    }

    // <folder>/<graph>.03.fold_constants.txt; a folder that cannot be written is a warning, not a failed build.
    void dump(char const* pass)
    {
        std::string stem = g_.name.empty() ? "graph" : g_.name;
        for (char& c : stem)
            if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_' && c != '-')
                c = '_';
        char number[16];
        std::snprintf(number, sizeof number, ".%03d.", done_);
        std::string const path = *options_.dumpFolder + "/" + stem + number + pass + ".txt";
        ir::BlobTable large; // contents of large constants are named by hash only
        std::ofstream file(path, std::ios::binary);
        file << ir::print(g_, &large);
        if (!file)
            ctx_.log.warning("cannot write {}", path);
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    Options const& options_;
    int done_ = 0;
    std::vector<Left> left_;
};

} // namespace

Result<std::vector<Alternative>> run(ir::Graph& g, PassContext const& ctx, Options const& options)
{
    return Runner(g, ctx, options).run();
}

} // namespace tw::passes
