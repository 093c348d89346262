/* Stands in for libcudart: page-locked memory that is shared memory and locked, as the driver's is charged.

   FAKE_DEVICES: how many devices there are. FAKE_CONTEXT: the code that making the context gives.
   FAKE_MOST: bytes from which on cudaHostAlloc gives cudaErrorMemoryAllocation. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static unsigned long long held;

static unsigned long long setting(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

int cudaGetDeviceCount(int *count) {
    *count = (int)setting("FAKE_DEVICES", 1);
    return *count ? 0 : 100;
}

int cudaFree(void *pointer) {
    static char *context;
    (void)pointer;
    if (!context) {
        context = malloc(8u << 20);
        memset(context, 1, 8u << 20);
    }
    return (int)setting("FAKE_CONTEXT", 0);
}

int cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
    (void)flags;
    if (held + size > setting("FAKE_MOST", ~0ull))
        return 2;
    *pointer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (*pointer == MAP_FAILED || mlock(*pointer, size))
        return 2;
    held += size;
    return 0;
}

const char *cudaGetErrorString(int code) {
    return code == 2 ? "out of memory" : code == 100 ? "no CUDA-capable device is detected" : "fake failure";
}
