# SPDX-License-Identifier: Apache-2.0
"""Modules by the names of PyCUDA, for programs of TensorRT on machines without a GPU: driver and autoinit."""
