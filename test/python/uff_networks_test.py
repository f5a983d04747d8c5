# SPDX-License-Identifier: Apache-2.0
"""The ways in which samples of TensorRT use UFF models: digits, a client's plugin among the layers, SSD, Mask R-CNN; files of ours, answers by NumPy."""

import ctypes
import json
import pathlib
import subprocess

import callback_probe  # stands beside the library of plugins
import numpy as np
import pytest
import tensorrt as trt

from small import QUIET, run_batch
from standard_plugins_detection_test import grid, ssd
from standard_plugins_elsewhere import elsewhere
from standard_plugins_proposals_test import best, detections_of, moved, pyramid_anchors, rows
from standard_plugins_regions_test import pyramid
from uff_files import Model, Orders, Value, close

FOLDER = pathlib.Path(callback_probe.__file__).parent
TRTEXEC = FOLDER.parents[1] / "bin" / "trtexec"
assert trt.init_libnvinfer_plugins(QUIET, "")


def lenet(last, clip=None, batch=4, order=None):
    """(model, logits, probabilities) of digits: two convolutions with pools, two fully connected layers. `clip`: in place of the ReLUs."""
    m = Model(batch=batch, last=last, seed=51)
    x = m.input("in", (28, 28, 1) if last else (1, 28, 28), order, value=m.random.uniform(0, 1, (batch, 28, 28, 1) if last else (batch, 1, 28, 28)))
    for c, k in ((1, 8), (8, 16)):
        bias, y = m.weights(k), m.conv(x, m.weights(5, 5, c, k, scale=0.2), same=k == 8)
        y = m.node("Binary", [y, bias], y.value + (bias.value if last else bias.value[:, None, None]), func="add")
        x = m.pool(clip(m, y) if clip else m.relu(y), "max", (2, 2), (2, 2))
    x = m.flatten(x)
    x = m.relu(m.binary("add", m.connected(x, m.weights(x.shape[1], 32, scale=0.1)), m.weights(32)))
    y = m.binary("add", m.connected(x, m.weights(32, 10, scale=0.3)), m.weights(10), name="logits")
    return m, y, m.softmax(y, name="out")


@pytest.mark.parametrize("last", [True, False])
def test_digits(last):
    m, _, out = lenet(last)
    m.file.node("MarkOutput", "MarkOutput_0", ["out"])
    got = m.run("MarkOutput_0")["out"]
    assert got.shape == (4, 10, 1, 1)
    close(got.reshape(4, 10), out.value, 2e-5)


def test_digits_in_half_precision():
    m, logits, _ = lenet(True)
    got = m.run(logits, flags=[trt.BuilderFlag.FP16], dtype=trt.float16)["logits"].reshape(4, 10)
    close(got, logits.value, 2e-2)
    assert (got.argmax(1) == logits.value.argmax(1)).all()


def test_digits_as_integers():
    """Ranges set by hand, as the sample does it where nothing is calibrated."""
    m, logits, _ = lenet(True)
    builder, network, parser = parsed = m.parsed(logits)
    for i in range(network.num_inputs):
        network.get_input(i).dynamic_range = (-1, 1)
    for i in range(network.num_layers):
        for k in range(network[i].num_outputs):
            network[i].get_output(k).dynamic_range = (-8, 8)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    plan = builder.build_serialized_network(network, config)
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(plan)
    got = run_batch(engine, {"in": m.registered("in")[2]})["logits"].reshape(4, 10)
    assert np.corrcoef(got.ravel(), logits.value.ravel())[0, 1] > 0.98 and parsed


def test_the_parser_may_go_before_the_engine_runs():
    m, _, out = lenet(True)
    builder, network, parser = m.parsed(out)
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    del parser, network, builder
    close(elsewhere(plan, {"in": m.registered("in")[2]})["out"].reshape(4, 10), out.value, 2e-5)


@pytest.mark.parametrize("last", [True, False])
def test_a_clients_plugin(last):
    """A clip in place of the ReLUs, whose library the client loads."""
    ctypes.CDLL(str(FOLDER / "libclip_plugin.so"))

    def clip(m, x):
        return m.node("_CustomClipPlugin", [x], np.clip(x.value, 0, 1.5), clipMin_u_float=0.0, clipMax=1.5)

    m, _, out = lenet(last, clip=clip)
    close(m.run(out)["out"].reshape(4, 10), out.value, 2e-5)
    m.file.node("_CustomClipPlugin", "half", ["in"], clipMin=0.0)
    assert "UffParser: Parser error: half: createPlugin()" in m.refusal("half")


def test_ssd():
    """Channels last, registered channels first with the sizes that a rewritten Placeholder has; anchors of one node that has an output for each map."""
    n, classes, channels = 2, 3, 8
    ratios, variance, per_cell = [1.0, 2.0, 0.5], [0.1, 0.1, 0.2, 0.2], [3, 4]
    m = Model(batch=n, seed=52)
    x = Value("Input", m.random.uniform(-1, 1, (n, 24, 24, 3)).astype(np.float32).astype(float))
    m.file.node("Input", "Input", shape=[1, 3, 24, 24])
    m.inputs["Input"] = (x.value.astype(np.float32), None, True)

    def block(x, c, k, stride):
        y = m.depthwise(x, m.weights(3, 3, c, 1), (stride, stride))
        y = m.batchnorm(y, m.weights(c), m.weights(c), m.weights(c), m.const(m.random.uniform(0.5, 2, c)))
        y = m.activation("relu6", y, lambda v: np.clip(v, 0, 6))
        return m.activation("relu6", m.binary("add", m.conv(y, m.weights(1, 1, c, k)), m.weights(k)), lambda v: np.clip(v, 0, 6))

    x = m.activation("relu6", m.conv(x, m.weights(3, 3, 3, 6), (2, 2)), lambda v: np.clip(v, 0, 6))
    first = block(x, 6, channels, 2)
    maps = [first, block(first, channels, channels, 2)]
    sizes = [v.shape[1] for v in maps]
    assert sizes == [6, 3]
    heads = {"loc": [], "conf": []}
    for v, per in zip(maps, per_cell):
        for name, width in (("loc", 4), ("conf", classes)):
            y = m.binary("add", m.conv(v, m.weights(1, 1, channels, width * per, scale=0.15)), m.weights(width * per, scale=0.1))
            heads[name].append(m.reshape(y, [-1, v.shape[1] ** 2 * per, 1, width]))
    flat = {name: np.concatenate([h.value.reshape(n, -1) for h in list_], 1)[..., None, None] for name, list_ in heads.items()}
    locations = m.node("_FlattenConcat_TRT", heads["loc"], None, axis=1, ignoreBatch=0)
    confidences = m.node("_FlattenConcat_TRT", heads["conf"], None, axis_u_int=1, ignoreBatch_u_int=0)
    anchors = m.node("_GridAnchor_TRT", [], None, name="PriorBox", minSize=0.2, maxSize=0.9, aspectRatios=ratios, variance=variance, featureMapShapes=sizes, numLayers=2)
    priors = m.node("Concat", [anchors], None, name="concat_priorbox", axis=2)
    m.node("_NMS_TRT", [locations, priors, confidences], None, name="NMS", shareLocation=1, varianceEncodedInTarget=0, backgroundLabelId=0, confidenceThreshold=0.5,
           nmsThreshold=0.6, topK=50, keepTopK=20, numClasses=classes, inputOrder=[0, 2, 1], confSigmoid=1, isNormalized=1, codeType=3)  # fmt: skip
    m.file.node("MarkOutput", "MarkOutput_0", ["NMS"])
    builder, network, parser = m.parsed("MarkOutput_0")
    assert tuple(network.get_input(0).shape) == (3, 24, 24)
    assert [network.get_output(i).name for i in range(2)] == ["NMS", "NMS_1"]
    got = elsewhere(builder.build_serialized_network(network, builder.create_builder_config()), {"Input": m.registered("Input")[2]})
    boxes = np.concatenate(grid([(s, s) for s in sizes], ratios, 0.2, 0.9, variance), 2)
    wanted, counts = ssd(flat["loc"], flat["conf"], boxes, classes=classes, share=1, code=3, encoded=0, sigmoid=1, keep=20, normalized=True, background=0, top=50, least=0.5,
                         overlap=0.6)  # fmt: skip
    assert counts.min() > 3 and (got["NMS_1"].view(np.int32) == counts).all()
    close(got["NMS"], wanted, 5e-5)
    assert parser


def test_mask_rcnn():
    """Channels first: a pyramid by ResizeNearest_TRT, proposals, regions whose layers have them in front of the channels, detections, masks."""
    n, side, channels, classes, keep, found = 2, 64, 4, 3, 12, 6
    m = Model(batch=n, last=False, seed=53)
    anchors = pyramid_anchors(side, side)
    top = m.input("top", (channels, 2, 2))
    objects, deltas = m.input("objects", (len(anchors), 2)), m.input("deltas", (len(anchors), 4), value=m.random.uniform(-1, 1, (n, len(anchors), 4)))
    levels = [top]
    for _ in range(3):
        v = levels[0]
        levels.insert(0, m.node("_ResizeNearest_TRT", [v], v.value.repeat(2, 2).repeat(2, 3), scale_u_float=2.0))
    lateral = m.weights(3, 3, channels, channels, scale=0.3)
    levels = [m.relu(m.conv(v, lateral)) for v in levels]
    maps = [v.value for v in levels]
    scores = m.softmax(objects)
    column = lambda v: m.node("ExpandDims", [v], v.value[..., None], axis=-1)
    rois = m.node("_ProposalLayer_TRT", [column(scores), column(deltas)], None, name="ROI", prenms_topk=200, keep_topk=keep, iou_threshold=0.7, image_size=[3, side, side])
    proposed = []
    for s, d in zip(scores.value[..., 1], deltas.value):
        moves = np.clip(moved(anchors, d, (0.1, 0.1, 0.2, 0.2)), 0, 1)
        proposed.append(rows(moves, best(moves, np.where(s > 0.01, s, -np.inf), 200, keep, 0.7), keep, (0, 0, 0, 0)))
    proposed = np.array(proposed)
    fields = dict(fpn_scale=56, image_size=[side, side], roi_coords_absolute=0, roi_coords_swap=1, roi_coords_transform=-1, sampling_ratio=1)
    align = lambda boxes, size: pyramid(boxes, maps, size, (side, side), 56, absolute=0, swap=1, transform=-1, ratio=1)
    regions = m.node("_PyramidROIAlign_TRT", [rois, *levels], align(proposed, 3), pooled_size=3, **fields)
    # The head: a convolution over whole regions, normalized, then two matrices.
    w = m.weights(3, 3, channels, 10)
    y = m.node("Conv", [regions, w], np.einsum("nrcij,ijck->nrk", regions.value, w.value), strides=[1, 1], **m.ordered("+CK"))
    gamma, beta, mean, variance = m.weights(10), m.weights(10), m.weights(10), m.const(m.random.uniform(0.5, 2, 10))
    scaled = (y.value - mean.value) / np.sqrt(variance.value + 1e-3) * gamma.value + beta.value
    y = m.relu(m.node("Batchnorm", [y, gamma, beta, mean, variance], scaled, epsilon=1e-3, **m.ordered()))
    matrix = lambda k, scale: m.weights(10, k, scale=scale)

    def connected(k, scale, bias):
        w = matrix(k, scale)
        return m.binary("add", m.node("FullyConnected", [y, w], y.value @ w.value, inputs_orders=Orders(["NC", "CK"])), m.const(bias))

    kinds = connected(classes, 0.7, np.array([-1, 0.2, 0.3]))
    kinds = m.node("Softmax", [kinds], np.exp(kinds.value) / np.exp(kinds.value).sum(-1, keepdims=True), axis=0, inputs_orders=Orders(["N+C"]))
    sides = connected(4 * classes, 0.1, np.zeros(4 * classes))
    detections = m.node("_DetectionLayer_TRT", [sides, kinds, rois], None, name="mrcnn_detection", num_classes=classes, keep_topk=found, score_threshold=0.3, iou_threshold=0.5)
    wanted = detections_of(kinds.value, sides.value, proposed, found)
    assert (wanted[:, 0, 4] > 0).all()
    boxes = m.node("_SpecialSlice_TRT", [detections], None)
    masks = align(wanted[..., :4], 4)
    masks = m.node("_PyramidROIAlign_TRT", [boxes, *levels], masks, pooled_size=4, **fields)
    k = m.weights(2, 2, 5, channels)
    grown = np.einsum("nrchw,ijkc->nrkhiwj", masks.value, k.value).reshape(n, found, 5, 8, 8)
    grown = m.relu(m.node("ConvTranspose", [masks, k, m.const(np.array([8, 8], np.int32))], grown, strides=[2, 2], **m.ordered("+CK")))
    out = m.activation("sigmoid", grown, lambda v: 1 / (1 + np.exp(-v)), name="mrcnn_mask/Sigmoid")
    got = m.run(detections, out)
    close(got["mrcnn_detection"], wanted, 1e-4)
    close(got["mrcnn_mask/Sigmoid"], out.value, 1e-3)


# ---- trtexec


def tool(*arguments):
    return subprocess.run([TRTEXEC, *map(str, arguments), "--warmUp=0", "--duration=0", "--iterations=1"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=280)


@pytest.mark.parametrize("nhwc", [False, True])
def test_trtexec(tmp_path, nhwc):
    m, _, out = lenet(True)
    (tmp_path / "digits.uff").write_bytes(m.file.bytes())
    m.registered("in")[2].tofile(tmp_path / "in.bin")
    dims = "28,28,1" if nhwc else "1,28,28"
    result = tool(f"--uff={tmp_path}/digits.uff", f"--uffInput=in,{dims}", "--output=out,logits", *(["--uffNHWC"] if nhwc else []), "--batch=4", f"--loadInputs=in:{tmp_path}/in.bin",
                  f"--exportOutput={tmp_path}/out.json")  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    outputs = {o["name"]: np.array(o["values"]) for o in json.loads((tmp_path / "out.json").read_text())}
    close(outputs["out"].reshape(4, 10), out.value, 2e-5)
    assert set(outputs) == {"out", "logits"}


def test_trtexec_refuses(tmp_path):
    m, _, out = lenet(True)
    (tmp_path / "digits.uff").write_bytes(m.file.bytes())
    (tmp_path / "none.uff").write_bytes(b"\xff" * 9)
    for arguments, sentence in (
        ([f"--uff={tmp_path}/digits.uff", "--uffInput=in,1,28,28", "--output=nothing"], "the graph has no node 'nothing'"),
        ([f"--uff={tmp_path}/digits.uff", "--uffInput=in,28,28,1", "--output=out"], "kernel weights has count"),
        ([f"--uff={tmp_path}/none.uff", "--uffInput=in,1,28,28", "--output=out"], "not a UFF model"),
        ([f"--uff={tmp_path}/lost.uff", "--uffInput=in,1,28,28", "--output=out"], "cannot be read"),
    ):
        result = tool(*arguments)
        assert result.returncode != 0 and sentence in result.stdout + result.stderr, result.stdout + result.stderr
    assert out
