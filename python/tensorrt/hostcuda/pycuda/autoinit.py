# SPDX-License-Identifier: Apache-2.0
"""Makes the context of the first device, as PyCUDA's module of this name does."""

from . import driver

driver.init()
device = driver.Device(0)
context = device.make_context()
