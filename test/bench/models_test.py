#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/models with their parameters, small: batches, sequence lengths, transformers without embeddings and heads. Each is built
and run by trtexec on the CPU and agrees with ONNX Runtime; the batches of one network share their weights. Of layers that share
theirs the plan holds one copy.
usage: models_test.py TRTEXEC           skipped (77) where numpy, onnx or onnxruntime is missing"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "models"))
try:
    import numpy as np
    import onnx
    import onnxruntime
    import bert
    import resnet
    import vit
except ImportError as error:
    print(f"skipped: {error}; `make bench-peers` makes a .venv with these packages")
    sys.exit(77)

BERT = ("bert_base", 2, 64, 2, 16)  # layers, width, heads, length
VIT = ("vit_b16", 2, 64, 2, 48)     # layers, width, heads, image
CASES = {
    "resnet50 batch 2": lambda: resnet.resnet50(2, 64),
    "bert batch 1": lambda: bert.bert(*BERT),
    "bert batch 3": lambda: bert.bert(*BERT, batch=3),
    "bert body batch 3": lambda: bert.bert(*BERT, batch=3, body=True),
    "albert": lambda: bert.albert("albert", 12, 128, 2, 16, vocabulary=1000),
    "vit batch 1": lambda: vit.vit(*VIT),
    "vit batch 3": lambda: vit.vit(*VIT, batch=3),
    "vit body batch 3": lambda: vit.vit(*VIT, batch=3, body=True),
}
PLAN_LIMIT = {"albert": 1.5}  # times the model: one layer's weights, and what twelve layers are
SAME_WEIGHTS = [("bert batch 1", "bert batch 3"), ("vit batch 1", "vit batch 3")]


def inputs(session):
    random, feed = np.random.default_rng(3), {}
    for i in session.get_inputs():
        if i.name == "attention_mask":  # every sentence has a length of its own
            feed[i.name] = (np.arange(i.shape[1])[None] < random.integers(1, i.shape[1] + 1, (i.shape[0], 1))).astype(np.int64)
        elif "int64" in i.type:
            feed[i.name] = random.integers(0, 2 if "type" in i.name else 1000, i.shape)
        else:
            feed[i.name] = random.standard_normal(i.shape).astype(np.float32)
    return feed


def agrees(tool, model, folder, plan_limit):
    """The reason why not, or nothing."""
    path = os.path.join(folder, "model.onnx")
    onnx.save_model(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = inputs(session)
    results = session.run(None, feed)
    if any(np.std(r) < 1e-3 for r in results):
        return "the outputs hardly vary: they would prove nothing"
    for kind, pairs in (("input", feed.items()), ("output", zip([o.name for o in session.get_outputs()], results))):
        for i, (name, value) in enumerate(pairs):
            with open(os.path.join(folder, f"{kind}_{i}.pb"), "wb") as file:
                file.write(onnx.numpy_helper.from_array(value, name).SerializeToString())
    plan = os.path.join(folder, "model.plan")
    done = subprocess.run([tool, "--device=cpu", "--onnx=" + path, "--saveEngine=" + plan,
                           "--loadInputsFrom=" + folder, "--compare=" + folder, "--compareAtol=1e-3",
                           "--compareRtol=1e-3", "--warmUp=0", "--duration=0", "--iterations=1"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    if done.returncode != 0:
        return done.stdout.decode(errors="replace")[-2000:]
    sizes = os.path.getsize(path), os.path.getsize(plan)
    if plan_limit and sizes[1] > plan_limit * sizes[0]:
        return f"a plan of {sizes[1]} bytes for a model of {sizes[0]}"
    return ""


def main():
    models = {name: make().model() for name, make in CASES.items()}
    failed = 0
    for name, model in models.items():
        with tempfile.TemporaryDirectory() as folder:
            reason = agrees(sys.argv[1], model, folder, PLAN_LIMIT.get(name))
        failed += bool(reason)
        print(f"{name}: {'failed: ' + reason if reason else 'agrees'}", flush=True)
    for one, other in SAME_WEIGHTS:
        same = [t.SerializeToString() for t in models[one].graph.initializer] == [
            t.SerializeToString() for t in models[other].graph.initializer]
        failed += not same
        print(f"{one}, {other}: {'the same weights' if same else 'failed: the weights differ'}")
    count = len(models) + len(SAME_WEIGHTS)
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
