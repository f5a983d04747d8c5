#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""EfficientNMS_TRT on 25,200 boxes of 80 classes (YOLO of 640 x 640) beside ONNX Runtime's NonMaxSuppression with TopK, on the CPU, FP32.

Scores are those of a trained detector: nearly all of them near 0, some hundred boxes around a few objects of one class above the threshold.
ONNX Runtime gets the graph that exporters write for it: NonMaxSuppression over all classes, the scores of what it keeps, and the best of
these. Both processes take turns; boxes are compared first. Printed: medians over the rounds of both times and of ONNX Runtime's time / ours;
--out FILE: a record (record.py).
"""
import argparse
import statistics
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import engines
import record

MOST, OVERLAP = 100, 0.65
# Thresholds: of a deployed detector, of one that is being judged (COCO), and in between.
THRESHOLDS = (0.25, 0.05, 0.001)


def inputs(boxes, classes, objects, seed):
    """Corners in pixels, scores. Of each object some boxes that overlap."""
    r = np.random.Generator(np.random.PCG64(seed))
    centre, side = r.uniform(0, 640, (boxes, 2)), r.uniform(10, 200, (boxes, 2))
    scores = 10 ** r.uniform(-6, -2.5, (boxes, classes))
    at = 0
    for _ in range(objects):
        place, size, kind = r.uniform(100, 540, 2), r.uniform(30, 200, 2), r.integers(classes)
        for _ in range(int(r.integers(8, 25))):
            centre[at], side[at] = place + r.normal(0, 4, 2), size * r.uniform(0.9, 1.1, 2)
            scores[at, kind] = r.uniform(0.05, 0.95)
            at += 1
    order = r.permutation(boxes)
    corners = np.concatenate([centre - side / 2, centre + side / 2], 1)
    return {"boxes": corners[order][None].astype(np.float32), "scores": scores[order][None].astype(np.float32)}


def save(path, nodes, arrays, outputs, constants=(), domains=()):
    values = lambda shapes: [helper.make_tensor_value_info(n, t, s) for n, t, s in shapes]
    graph = helper.make_graph(nodes, "nms", values((n, TensorProto.FLOAT, v.shape) for n, v in arrays.items()), values(outputs),
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)] + [helper.make_opsetid(d, 1) for d in domains])
    model.ir_version = 8
    onnx.save(model, path)


def save_ours(path, arrays, threshold):
    names = ["count", "found", "best", "kinds"]
    node = helper.make_node("EfficientNMS_TRT", ["boxes", "scores"], names, domain="TRT", plugin_version="1", background_class=-1, box_coding=0,
                            iou_threshold=OVERLAP, max_output_boxes=MOST, score_activation=0, score_threshold=threshold)
    save(path, [node], arrays, [("found", TensorProto.FLOAT, (1, MOST, 4)), ("best", TensorProto.FLOAT, (1, MOST))], domains=["TRT"])


def save_peer(path, arrays, threshold):
    """The best MOST of what NonMaxSuppression keeps; where it keeps fewer, zeros are behind them."""
    node, i64 = helper.make_node, np.int64
    nodes = [
        node("Transpose", ["scores"], ["by_class"], perm=[0, 2, 1]),
        node("NonMaxSuppression", ["boxes", "by_class", "most", "overlap", "least"], ["kept"]),
        node("GatherND", ["by_class", "kept"], ["of_kept"]),
        node("Pad", ["of_kept", "behind"], ["padded"]),
        node("TopK", ["padded", "most"], ["top", "where"], axis=0),
        node("Slice", ["kept", "two", "three", "one"], ["box"]),
        node("Squeeze", ["box", "one"], ["box_flat"]),
        node("Pad", ["box_flat", "behind"], ["box_padded"]),
        node("Gather", ["box_padded", "where"], ["chosen"]),
        node("Squeeze", ["boxes", "zero"], ["flat"]),
        node("Gather", ["flat", "chosen"], ["corners"]),
        node("Greater", ["top", "nothing"], ["is_there"]),
        node("Cast", ["is_there"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "one"], ["column"]),
        node("Mul", ["corners", "column"], ["rows"]),
        node("Unsqueeze", ["rows", "zero"], ["found"]),
        node("Unsqueeze", ["top", "zero"], ["best"]),
    ]
    constants = [("most", np.array([MOST], i64)), ("overlap", np.array([OVERLAP], np.float32)), ("least", np.array([threshold], np.float32)),
                 ("behind", np.array([0, MOST], i64)), ("zero", np.array([0], i64)), ("one", np.array([1], i64)), ("two", np.array([2], i64)),
                 ("three", np.array([3], i64)), ("nothing", np.array([0], np.float32))]
    save(path, nodes, arrays, [("found", TensorProto.FLOAT, (1, MOST, 4)), ("best", TensorProto.FLOAT, (1, MOST))], constants)


def outputs(worker, stem):
    names = worker.ask(f"outputs {stem}", "outputs").split()
    return {n: np.fromfile(f"{stem}{i}", np.float32) for i, n in enumerate(names)}


def compare(options, threshold, threads, folder):
    arrays = inputs(options.boxes, options.classes, options.objects, 1)
    files = {}
    for name, value in arrays.items():
        files[name] = f"{folder}/{name}.raw"
        value.tofile(files[name])
    ours, peer = f"{folder}/ours.onnx", f"{folder}/peer.onnx"
    save_ours(ours, arrays, threshold)
    save_peer(peer, arrays, threshold)
    plan, _ = engines.build_ours(options.bin_dir, ours, {}, threads, folder, options.timeout, True)
    both = [engines.start_ours(options.bin_dir, plan, threads, files, options.timeout),
            engines.start_peer("onnxruntime", peer, threads, files, {}, options.timeout)]
    try:
        for worker in both:
            worker.ready()
        got, wanted = (outputs(worker, f"{folder}/{i}_") for i, worker in enumerate(both))
        for name in ("best", "found"):
            if not np.allclose(got[name], wanted[name], rtol=1e-5, atol=1e-4):
                raise engines.EngineError(f"'{name}' differs by {np.abs(got[name] - wanted[name]).max():.3g}")
        times = engines.times_in_turns(both, options.turn, options.rounds, first=(2, 5), repeats=1)
        ratios = sorted(b / a for a, b in zip(*times))
        row = {"score_threshold": threshold, "threads": threads, "boxes": options.boxes, "classes": options.classes,
               "found": int((wanted["best"] > 0).sum()), "ours_ms": 1e3 * statistics.median(times[0]), "onnxruntime_ms": 1e3 * statistics.median(times[1]),
               "ratio": statistics.median(ratios), "ratios": [ratios[0], ratios[-1]], "rounds": options.rounds}
        print("threshold {score_threshold}, {threads} thread(s): {ours_ms:.3f} ms, ONNX Runtime {onnxruntime_ms:.3f} ms, ratio {ratio:.2f}".format(**row))
        return row
    finally:
        for worker in both:
            worker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boxes", type=int, default=25200)
    parser.add_argument("--classes", type=int, default=80)
    parser.add_argument("--objects", type=int, default=30)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turn", type=float, default=0.2, help="seconds")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--bin-dir", default="build/release/bin")
    parser.add_argument("--out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [compare(options, threshold, int(threads), folder) for threads in options.threads.split(",") for threshold in THRESHOLDS]
    if options.out:
        import onnxruntime
        more = {"onnxruntime": onnxruntime.__version__, "op": "EfficientNMS_TRT beside NonMaxSuppression, GatherND and TopK"}
        record.write_record(options.out, {**record.header(record.cpu_name(), **more), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
