// SPDX-License-Identifier: Apache-2.0
// cuDLA: runs DLA loadables that a build with nvinfer1::EngineCapability::kDLA_STANDALONE gives. C, with the names and
// numbers of cuDLA 1.2, for loadables of our model of a DLA (docs/dla.md): libcudla runs them on the present device.
#ifndef TENSORWRIGHT_CUDLA_H
#define TENSORWRIGHT_CUDLA_H

#include <stddef.h>
#include <stdint.h>

#define CUDLA_VER_MAJOR 1U
#define CUDLA_VER_MINOR 2U
#define CUDLA_VER_PATCH 1U

/* cudlaModuleTensorDescriptor::dataFormat */
#define CUDLA_DATA_FORMAT_UNKNOWN 0U
#define CUDLA_DATA_FORMAT_NCHW 1U   /* kDLA_LINEAR */
#define CUDLA_DATA_FORMAT_NHWC 2U   /* kDLA_HWC4 */
#define CUDLA_DATA_FORMAT_NCxHWx 3U /* kCHW16, kCHW32 */

/* cudlaModuleTensorDescriptor::dataType */
#define CUDLA_DATA_TYPE_UNKNOWN 0U
#define CUDLA_DATA_TYPE_FLOAT 1U
#define CUDLA_DATA_TYPE_HALF 2U
#define CUDLA_DATA_TYPE_INT16 3U
#define CUDLA_DATA_TYPE_INT8 4U
#define CUDLA_DATA_TYPE_UINT8 5U
#define CUDLA_DATA_TYPE_UINT16 6U

/* cudlaModuleTensorDescriptor::dataCategory */
#define CUDLA_DATA_CATEGORY_IMAGE 0U
#define CUDLA_DATA_CATEGORY_WEIGHT 1U
#define CUDLA_DATA_CATEGORY_FEATURE 2U
#define CUDLA_DATA_CATEGORY_PLANAR 3U
#define CUDLA_DATA_CATEGORY_BIAS 4U

/* cudlaModuleTensorDescriptor::pixelFormat: those that kDLA_HWC4 has, and what is no image. */
#define CUDLA_PIXEL_FORMAT_R8 0U
#define CUDLA_PIXEL_FORMAT_R16_F 5U
#define CUDLA_PIXEL_FORMAT_A16B16G16R16_F 8U
#define CUDLA_PIXEL_FORMAT_A8B8G8R8 12U
#define CUDLA_PIXEL_FORMAT_FEATURE 36U
#define CUDLA_PIXEL_FORMAT_UNKNOWN 37U

/* cudlaModuleTensorDescriptor::pixelMapping */
#define CUDLA_PIXEL_MAPPING_PITCH_LINEAR 0U
#define CUDLA_PIXEL_MAPPING_BLOCK_LINEAR 1U

#define CUDLA_LOADABLE_TENSOR_DESC_NUM_STRIDES 8U
#define CUDLA_RUNTIME_TENSOR_DESC_NAME_MAX_LEN 80U

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudlaStatus
{
    cudlaSuccess = 0,
    cudlaErrorInvalidParam = 1,
    cudlaErrorOutOfResources = 2,
    cudlaErrorCreationFailed = 3,
    cudlaErrorInvalidAddress = 4,
    cudlaErrorOs = 5,
    cudlaErrorCuda = 6,
    cudlaErrorUmd = 7, /* the engine inside a loadable is refused or fails */
    cudlaErrorInvalidDevice = 8,
    cudlaErrorInvalidAttribute = 9,
    cudlaErrorIncompatibleDlaSWVersion = 10,
    cudlaErrorMemoryRegistered = 11,
    cudlaErrorInvalidModule = 12,
    cudlaErrorUnsupportedOperation = 13,
    cudlaErrorNvSci = 14,
    cudlaErrorDlaErrInvalidInput = 0x40000001,
    cudlaErrorDlaErrInvalidPreAction = 0x40000002,
    cudlaErrorDlaErrNoMem = 0x40000003,
    cudlaErrorDlaErrProcessorBusy = 0x40000004,
    cudlaErrorDlaErrTaskStatusMismatch = 0x40000005,
    cudlaErrorDlaErrEngineTimeout = 0x40000006,
    cudlaErrorDlaErrDataMismatch = 0x40000007,
    cudlaErrorUnknown = 0x7fffffff
} cudlaStatus;

typedef enum cudlaMode
{
    CUDLA_CUDA_DLA = 0,  /* pointers and streams of CUDA */
    CUDLA_STANDALONE = 1 /* NvSciBuf and NvSciSync: refused here */
} cudlaMode;

typedef enum cudlaModuleAttributeType
{
    CUDLA_NUM_INPUT_TENSORS = 0,
    CUDLA_NUM_OUTPUT_TENSORS = 1,
    CUDLA_INPUT_TENSOR_DESCRIPTORS = 2,
    CUDLA_OUTPUT_TENSOR_DESCRIPTORS = 3
} cudlaModuleAttributeType;

typedef enum cudlaFenceType
{
    CUDLA_NVSCISYNC_FENCE = 1,
    CUDLA_NVSCISYNC_FENCE_SOF = 2
} cudlaFenceType;

typedef enum cudlaModuleLoadFlags
{
    CUDLA_MODULE_DEFAULT = 0,
    CUDLA_MODULE_ENABLE_FAULT_DIAGNOSTICS = 1
} cudlaModuleLoadFlags;

typedef enum cudlaSubmissionFlags
{
    CUDLA_SUBMIT_NOOP = 1, /* checks everything and runs nothing */
    CUDLA_SUBMIT_SKIP_LOCK_ACQUIRE = 1 << 1,
    CUDLA_SUBMIT_DIAGNOSTICS_TASK = 1 << 2
} cudlaSubmissionFlags;

typedef enum cudlaAccessPermissionFlags
{
    CUDLA_READ_WRITE_PERM = 0,
    CUDLA_READ_ONLY_PERM = 1,
    CUDLA_TASK_STATISTICS = 1 << 1
} cudlaAccessPermissionFlags;

typedef enum cudlaDevAttributeType
{
    CUDLA_UNIFIED_ADDRESSING = 0,
    CUDLA_DEVICE_VERSION = 1
} cudlaDevAttributeType;

typedef struct cudlaDevHandle_t* cudlaDevHandle;
typedef struct cudlaModule_t* cudlaModule;

typedef struct cudlaExternalMemoryHandleDesc_t
{
    void const* extBufObject;
    unsigned long long size;
} cudlaExternalMemoryHandleDesc;

typedef struct cudlaExternalSemaphoreHandleDesc_t
{
    void const* extSyncObject;
} cudlaExternalSemaphoreHandleDesc;

typedef struct cudlaModuleTensorDescriptor_t
{
    char name[CUDLA_RUNTIME_TENSOR_DESC_NAME_MAX_LEN + 1];
    uint64_t size; /* bytes, padding included */
    uint64_t n;
    uint64_t c;
    uint64_t h;
    uint64_t w;
    uint8_t dataFormat;
    uint8_t dataType;
    uint8_t dataCategory;
    uint8_t pixelFormat;
    uint8_t pixelMapping;
    uint32_t stride[CUDLA_LOADABLE_TENSOR_DESC_NUM_STRIDES]; /* bytes, of w, h, c (a vector of channels) and n */
} cudlaModuleTensorDescriptor;

typedef struct CudlaFence_t
{
    void* fence;
    cudlaFenceType type;
} CudlaFence;

typedef union cudlaDevAttribute_t {
    uint8_t unifiedAddressingSupported;
    uint32_t deviceVersion;
} cudlaDevAttribute;

typedef union cudlaModuleAttribute_t {
    uint32_t numInputTensors;
    uint32_t numOutputTensors;
    cudlaModuleTensorDescriptor* inputTensorDesc;  /* the client's memory, of numInputTensors */
    cudlaModuleTensorDescriptor* outputTensorDesc; /* the client's memory, of numOutputTensors */
} cudlaModuleAttribute;

typedef struct cudlaWaitEvents_t
{
    CudlaFence const* preFences;
    uint32_t numEvents;
} cudlaWaitEvents;

typedef struct cudlaSignalEvents_t
{
    uint64_t* const* devPtrs;
    CudlaFence* eofFences;
    uint32_t numEvents;
} cudlaSignalEvents;

typedef struct cudlaTask_t
{
    cudlaModule moduleHandle;
    uint64_t* const* outputTensor; /* registered memory, in the order of the descriptors */
    uint32_t numOutputTensors;
    uint32_t numInputTensors;
    uint64_t* const* inputTensor;
    cudlaWaitEvents const* waitEvents; /* null, as signalEvents: the stream keeps the order */
    cudlaSignalEvents* signalEvents;
} cudlaTask;

/* 1000000 major + 1000 minor + patch */
cudlaStatus cudlaGetVersion(uint64_t* version);
/* DLA cores: 0 where no model of a DLA is asked for. */
cudlaStatus cudlaDeviceGetCount(uint64_t* pNumDevices);
cudlaStatus cudlaCreateDevice(uint64_t device, cudlaDevHandle* devHandle, uint32_t flags);
/* With its modules and registrations. */
cudlaStatus cudlaDestroyDevice(cudlaDevHandle devHandle);
cudlaStatus cudlaDeviceGetAttribute(cudlaDevHandle devHandle, cudlaDevAttributeType attrib,
                                    cudlaDevAttribute* pAttribute);
/* Of tasks that ended after cudlaSubmitTask() returned. */
cudlaStatus cudlaGetLastError(cudlaDevHandle devHandle);
cudlaStatus cudlaSetTaskTimeoutInMs(cudlaDevHandle devHandle, uint32_t timeout);

/* `ptr`: memory that the present device reaches. */
cudlaStatus cudlaMemRegister(cudlaDevHandle devHandle, uint64_t const* ptr, size_t size, uint64_t** devPtr,
                             uint32_t flags);
cudlaStatus cudlaMemUnregister(cudlaDevHandle devHandle, uint64_t const* devPtr);
cudlaStatus cudlaImportExternalMemory(cudlaDevHandle devHandle, cudlaExternalMemoryHandleDesc const* desc,
                                      uint64_t** devPtr, uint32_t flags);
cudlaStatus cudlaImportExternalSemaphore(cudlaDevHandle devHandle, cudlaExternalSemaphoreHandleDesc const* desc,
                                         uint64_t** devPtr, uint32_t flags);
cudlaStatus cudlaGetNvSciSyncAttributes(uint64_t* attrList, uint32_t flags);

/* The memory at `pModule` may go afterwards. At most 16 modules a core. */
cudlaStatus cudlaModuleLoadFromMemory(cudlaDevHandle devHandle, uint8_t const* pModule, size_t moduleSize,
                                      cudlaModule* hModule, uint32_t flags);
cudlaStatus cudlaModuleGetAttributes(cudlaModule hModule, cudlaModuleAttributeType attrType,
                                     cudlaModuleAttribute* attribute);
cudlaStatus cudlaModuleUnload(cudlaModule hModule, uint32_t flags);
/* `stream`: a cudaStream_t, or null. */
cudlaStatus cudlaSubmitTask(cudlaDevHandle devHandle, cudlaTask const* ptrToTasks, uint32_t numTasks, void* stream,
                            uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
