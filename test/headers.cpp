// SPDX-License-Identifier: Apache-2.0
// Nothing: the precompiled headers of tests belong to a target, and a target has a source.
