# SPDX-License-Identifier: Apache-2.0
"""Operators beyond 8.5's, and what came to them in later opsets: beside ONNX's reference, or NumPy where it has none."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")
from onnx import TensorProto, helper  # noqa: E402
from onnx_models import Model, outputs, parsed  # noqa: E402


def randn(r, *shape):
    return r.standard_normal(shape).astype(np.float32)


def agree(model, name="y", want=None, rank=None, tolerance=1e-5):
    data = model.bytes(**{name: (np.float32, None if rank is None else [None] * rank)})
    if want is None:
        want = reference.ReferenceEvaluator(onnx.load_from_string(data)).run([name], model.feed)[0]
    got = outputs(data, model.feed)[0][name]
    assert got.shape == want.shape
    assert want.size < 4 or np.std(want) > 1e-3
    np.testing.assert_allclose(got, want, atol=tolerance * max(np.abs(want).max(initial=0), 1))


def refusal(op, inputs, sentence, opset=19, **attributes):
    """inputs: arrays, the first fed; None leaves one out."""
    model = Model(opset)
    arrays = [a if a is None else np.asarray(a, np.float32 if np.asarray(a).dtype == float else None) for a in inputs]
    names = ["" if a is None else (model.constant if i else model.fed)(f"i{i}", a) for i, a in enumerate(arrays)]
    model.node(op, names, ["y"], **attributes)
    graph = helper.make_graph(model.nodes, "g", [helper.make_tensor_value_info("i0", TensorProto.FLOAT, model.feed["i0"].shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], model.initializers)
    error = parsed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString())[1]
    assert error is not None and sentence in error


@pytest.mark.parametrize("alpha", [None, 1.702, -0.5])
def test_swish(alpha):
    x = randn(np.random.default_rng(1), 3, 7)
    model = Model(24)
    model.node("Swish", [model.fed("x", x)], ["y"], **({} if alpha is None else {"alpha": alpha}))
    agree(model, want=x / (1 + np.exp(-(alpha or 1) * x)), rank=2)


@pytest.mark.parametrize("seed", range(16))
def test_average_pool_with_dilations(seed):
    r = np.random.default_rng(seed)
    spatial = 1 + seed % 3
    kernel = [int(k) for k in r.integers(1, 4, spatial)]
    dilations = [int(d) for d in r.integers(1, 4, spatial)]
    dilations[0], kernel[0] = 2, 3
    attributes = {"kernel_shape": kernel, "dilations": dilations, "strides": [int(s) for s in r.integers(1, 3, spatial)],
                  "count_include_pad": int(r.integers(2)), "ceil_mode": 0}
    attributes["pads"] = [int(r.integers(0, min(k, 2))) for k in kernel * 2]
    model = Model(19)
    model.node("AveragePool", [model.fed("x", randn(r, 2, 3, *r.integers(9, 12, spatial)))], ["y"], **attributes)
    agree(model, rank=2 + spatial)


@pytest.mark.parametrize("seed", range(12))
def test_col2im(seed):
    r = np.random.default_rng(seed)
    n = 1 + seed % 3
    image, block = [int(v) for v in r.integers(5, 8, n)], [int(v) for v in r.integers(1, 3, n)]
    strides, dilations, pads = ([int(v) for v in r.integers(low, high, count)] for low, high, count in ((1, 3, n), (1, 3, n), (0, 2, 2 * n)))
    places = int(np.prod([(image[i] + pads[i] + pads[i + n] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(n)]))
    model = Model(18)
    model.node("Col2Im", [model.fed("x", randn(r, 2, 3 * int(np.prod(block)), places)), model.constant("image", np.array(image)),
                          model.constant("block", np.array(block))], ["y"], strides=strides, dilations=dilations, pads=pads)
    x = model.feed["x"].reshape(2, 3, *block, places)
    want = np.zeros((2, 3, *(image[i] + pads[i] + pads[i + n] for i in range(n))), np.float32)
    steps = [(want.shape[i + 2] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
    for k in np.ndindex(*block):
        for p, at in enumerate(np.ndindex(*steps)):
            want[(slice(None), slice(None), *(at[i] * strides[i] + k[i] * dilations[i] for i in range(n)))] += x[(slice(None), slice(None), *k, p)]
    agree(model, want=want[(slice(None), slice(None), *(slice(pads[i], pads[i] + image[i]) for i in range(n)))], rank=n + 2)


@pytest.mark.parametrize("change", [{"strides": [0, 1]}, {"pads": [-1, 0, 0, 0]}, {"dilations": [1]}, {"strides": [1 << 40, 1]}])
def test_col2im_refusals(change):
    refusal("Col2Im", [np.zeros((1, 4, 4), np.float32), np.array([3, 3]), np.array([2, 2])], "strides", opset=18, **change)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_topk_of_an_open_axis(largest, dtype):
    """Neither K nor how many there are is known before the run."""
    import tensorrt as trt
    from small import run
    r = np.random.default_rng(2)
    x = r.integers(-50, 50, (3, 40)).astype(dtype)
    model = Model(17)
    kind = TensorProto.FLOAT if dtype == np.float32 else TensorProto.INT32
    model.nodes = [helper.make_node("Shape", ["x"], ["s"], start=1), helper.make_node("Div", ["s", "two"], ["k"]),
                   helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1, largest=largest)]
    model.constant("two", np.array([2], np.int64))
    graph = helper.make_graph(model.nodes, "g", [helper.make_tensor_value_info("x", kind, [3, "n"])],
                              [helper.make_tensor_value_info("v", kind, [3, None]), helper.make_tensor_value_info("i", TensorProto.INT64, [3, None])],
                              model.initializers)
    (builder, network, _, logger), error = parsed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    assert error is None, error
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (3, 2), (3, 40), (3, 100))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :20]
    got = run(engine, x=x)
    np.testing.assert_array_equal(got["i"], order)
    np.testing.assert_array_equal(got["v"], np.take_along_axis(x, order, axis=1))


def resize(r, mode, shape=(1, 2, 7, 8), opset=19, **attributes):
    model = Model(opset)
    inputs = [model.fed("x", randn(r, *shape)), "", "", ""]
    for i, name in enumerate(("roi", "scales", "sizes"), 1):
        if name in attributes:
            value = attributes.pop(name)
            inputs[i] = model.constant(name, np.array(value, np.int64 if name == "sizes" else np.float32))
    while not inputs[-1]:
        inputs.pop()
    model.node("Resize", inputs, ["y"], mode=mode, **attributes)
    agree(model, rank=len(shape), tolerance=1e-4)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resize_antialias(mode, seed):
    r = np.random.default_rng(seed)
    attributes = {"antialias": 1, "coordinate_transformation_mode": ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"][seed % 4]}
    if seed % 3:
        attributes["scales"] = [1, 1, *r.uniform(0.3, 1.5, 2)]
        if attributes["coordinate_transformation_mode"] == "align_corners":
            attributes["scales"] = [1, 1, 5 / 7, 0.5]
    else:
        attributes["sizes"] = [1, 2, *r.integers(2, 12, 2)]
    if seed % 2 and mode == "cubic":
        attributes |= {"exclude_outside": 1, "cubic_coeff_a": -0.5}
    resize(r, mode, **attributes)


def test_resize_antialias_computes_sizes_in_floats():
    """5 times 2.6 is 13 there, and less than that in doubles."""
    model = Model(19)
    inputs = [model.fed("x", randn(np.random.default_rng(3), 1, 2, 5, 4)), "", model.constant("s", np.array([1, 1, 2.6, 1.5], np.float32))]
    model.node("Resize", inputs, ["y"], mode="linear", antialias=1)
    agree(model, want=model.answer(model.bytes(y=(np.float32, [1, 2, 13, 6])))["y"], rank=4, tolerance=1e-4)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [[5, 9], [12, 12], [3, 20]])
def test_resize_keeps_the_aspect_ratio(sizes, mode, policy):
    resize(np.random.default_rng(1), mode, axes=[2, 3], sizes=sizes, keep_aspect_ratio_policy=policy)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_half_pixel_symmetric(mode):
    resize(np.random.default_rng(2), mode, scales=[1, 1, 1.37, 0.61], coordinate_transformation_mode="half_pixel_symmetric")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("roi", [[0.2, 0.3, 0.9, 0.8], [-0.3, 0.5, 0.7, 1.4]])
def test_resize_crops(mode, roi):
    for axes in (None, [3, 2]):
        start, end = roi[:2], roi[2:]
        attributes = {"roi": [0, 0, *start, 1, 1, *end], "sizes": [1, 2, 5, 6]} if axes is None else {"axes": axes, "roi": roi, "sizes": [6, 5]}
        resize(np.random.default_rng(3), mode, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.5, **attributes)


def test_resize_refusals():
    x, scales = np.zeros((1, 1, 4, 4), np.float32), np.array([1, 1, 2, 2], np.float32)
    refusal("Resize", [x, None, scales], "'coordinate_transformation_mode' is 'sideways'", mode="linear", antialias=1, coordinate_transformation_mode="sideways")
    refusal("Resize", [x, None, None, np.array([1, 1, 4, 4])], "keep_aspect_ratio_policy", keep_aspect_ratio_policy="sometimes")
    refusal("Resize", [x, np.zeros(3, np.float32), scales], "roi has 3 numbers for 4 axes", coordinate_transformation_mode="tf_crop_and_resize")
    refusal("Resize", [x, None, scales * [1, 1, -1, 1]], "one of the scales is -2", mode="linear", antialias=1)
    refusal("Resize", [x, None, scales * np.float32(1e8)], "the import computes 2^24 at most", mode="linear", antialias=1)
    refusal("Resize", [x, None, scales * [1, 1, 2e6, 1]], "matrix of more than 2^24 numbers", mode="linear", antialias=1)
    refusal("Resize", [x, None, None, np.array([1, 1, 1 << 40, 4])], "the import computes 2^24 at most", keep_aspect_ratio_policy="not_smaller")
    refusal("Resize", [x, None, scales[:3]], "there are 3 scales for 4 axes", mode="linear", antialias=1)
    refusal("Resize", [x, None, np.array([1, 1, np.nan, 1], np.float32)], "one of the scales is nan", mode="linear", antialias=1)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 6), (1, 2, 3, 1, 4)])
def test_grid_sample_of_volumes(shape, mode, padding, align):
    if align and 1 in shape[2:] and padding == "reflection":
        pytest.skip("the reference divides by 0")
    r = np.random.default_rng(4)
    model = Model(20)
    model.node("GridSample", [model.fed("x", randn(r, *shape)), model.fed("g", r.uniform(-1.6, 1.6, (shape[0], 2, 3, 4, 3)).astype(np.float32))], ["y"],
               mode=mode, padding_mode=padding, align_corners=align)
    agree(model, rank=5, tolerance=1e-4)


def test_grid_sample_refusals():
    x = np.zeros((1, 1, 3, 3, 3), np.float32)
    refusal("GridSample", [x, np.zeros((1, 2, 2, 2, 3), np.float32)], "cubic sampling is of images of two dimensions", opset=20, mode="cubic")
    refusal("GridSample", [x, np.zeros((1, 2, 2, 2, 2), np.float32)], "does not fit data of shape", opset=20)


@pytest.mark.parametrize("seed", range(12))
def test_deform_conv(seed):
    r = np.random.default_rng(seed)
    group, moved = int(r.choice([1, 2])), int(r.choice([1, 2]))
    kernel = [int(v) for v in r.integers(1, 4, 2)]
    strides, dilations = [int(v) for v in r.integers(1, 3, 2)], [int(v) for v in r.integers(1, 3, 2)]
    pads = [int(v) for v in r.integers(0, 2, 4)]
    h, w = 9, 8
    rows, columns = ((n + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i, n in enumerate((h, w)))
    taps = kernel[0] * kernel[1]
    model = Model(19)
    inputs = [model.fed("x", randn(r, 2, 4, h, w)), model.constant("w", randn(r, 6, 4 // group, *kernel)),
              model.fed("o", (2 * randn(r, 2, moved * taps * 2, rows, columns)))]
    inputs.append(model.constant("b", randn(r, 6)) if r.integers(2) else "")
    if r.integers(2):
        inputs.append(model.fed("m", r.uniform(0, 1, (2, moved * taps, rows, columns)).astype(np.float32)))
    model.node("DeformConv", inputs, ["y"], group=group, offset_group=moved, kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads)
    agree(model, rank=4, tolerance=1e-4)


@pytest.mark.parametrize("change, sentence", [({"group": 3}, "do not fit"), ({"offset_group": 0}, "do not fit"), ({"offset_group": 2}, "of them are needed"),
                                              ({"strides": [0, 1]}, "strides"), ({"auto_pad": "SAME_UPPER"}, "auto_pad cannot be imported")])
def test_deform_conv_refusals(change, sentence):
    refusal("DeformConv", [np.zeros((1, 4, 5, 5), np.float32), np.zeros((2, 4, 2, 2), np.float32), np.zeros((1, 8, 4, 4), np.float32)], sentence, **change)


@pytest.mark.parametrize("opset", [7, 9, 13])
def test_batch_normalization_whose_outputs_say_training(opset):
    """Before opset 14 there is no attribute: five outputs are training, one is inference."""
    random = np.random.default_rng(opset)
    for count in (1, 5):
        model = Model(opset)
        model.fed("x", random.standard_normal((3, 4, 5)).astype(np.float32))
        given = [model.constant(name, random.random(4).astype(np.float32) + 0.5) for name in "sbmv"]
        names = ["y", "mean", "variance", "saved_mean", "saved_variance"][:count]
        model.node("BatchNormalization", ["x", *given], names, momentum=0.75)
        data = model.bytes(y=(np.float32, (3, 4, 5)), **{name: (np.float32, (4,)) for name in names[1:3]})
        got, _ = outputs(data, model.feed)
        for name, want in model.answer(data).items():
            np.testing.assert_allclose(got[name], want, atol=1e-5)
