// SPDX-License-Identifier: Apache-2.0
// Version numbers of the API and of the libraries.
#ifndef TENSORWRIGHT_NV_INFER_VERSION_H
#define TENSORWRIGHT_NV_INFER_VERSION_H

// The release of TensorRT whose API these headers give.
#define NV_TENSORRT_MAJOR 8
#define NV_TENSORRT_MINOR 5
#define NV_TENSORRT_PATCH 3
#define NV_TENSORRT_BUILD 1

#define NV_TENSORRT_LWS_MAJOR 0
#define NV_TENSORRT_LWS_MINOR 0
#define NV_TENSORRT_LWS_PATCH 0

// Numbers of the shared libraries' names: lib<name>.so.<major>.<minor>.<patch>.
#define NV_TENSORRT_SONAME_MAJOR 8
#define NV_TENSORRT_SONAME_MINOR 5
#define NV_TENSORRT_SONAME_PATCH 3

#endif
