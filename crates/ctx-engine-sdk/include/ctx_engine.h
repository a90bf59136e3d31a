/* The C ABI of a context engine. License: MIT OR Apache-2.0.
 *
 * A library has one entry point, ctx_engine_v1(). It returns a table that is valid until the
 * process ends; a library is never unloaded.
 *
 * Rules
 *  - Tables begin with their size, and fields are only ever appended. Check the size before you
 *    access a field: the other side may be older.
 *  - Input and output are bytes: JSON, as defined by the protocol of ctx-engine-sdk, unless the
 *    engine chooses another encoding in its answer to 'hello'. ctx_bytes are borrowed for the
 *    duration of the call. A ctx_buffer is freed by the side that allocated it, through the
 *    `release` function next to the function that returned it.
 *  - Calls on one engine come one at a time, from any thread. Only `cancel` may be called from
 *    another thread while a call is running.
 *  - Host services may be called only from inside a call, on its thread.
 *  - No exception and no longjmp may cross the boundary.
 */
#ifndef CTX_ENGINE_H
#define CTX_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CTX_ENGINE_ABI 1u

/* Return values. */
#define CTX_OK 0       /* an answer was returned; it may be an error, as JSON */
#define CTX_PANICKED 1 /* the engine must not be used again */
#define CTX_MISUSED 2  /* the caller broke a rule */

/* Borrowed bytes. */
typedef struct ctx_bytes {
    const uint8_t *data;
    size_t len;
} ctx_bytes;

/* Bytes allocated for the other side. */
typedef struct ctx_buffer {
    uint8_t *data;
    size_t len;
    size_t capacity; /* for the owner; the other side ignores it */
} ctx_buffer;

/* The function table that a host passes to an engine. */
typedef struct ctx_host_v1 {
    size_t size;   /* sizeof(ctx_host_v1) of the host */
    void *context; /* opaque value of the host: pass it back */
    /* {"id","host","params"} in, {"id","reply"} or {"id","error"} out */
    int32_t (*call)(void *context, ctx_bytes request, ctx_buffer *reply);
    void (*release)(void *context, ctx_buffer reply);
} ctx_host_v1;

/* The function table that a library returns to its host. */
typedef struct ctx_engine_table_v1 {
    size_t size;  /* sizeof(ctx_engine_table_v1) of the library */
    uint32_t abi; /* CTX_ENGINE_ABI */
    /* Creates an engine. The host's table is valid as long as the engine. */
    int32_t (*create)(const ctx_host_v1 *host, void **engine);
    /* {"id","verb","params"} in, {"id","ok"} or {"id","error"} out */
    int32_t (*call)(void *engine, ctx_bytes call, ctx_buffer *answer);
    void (*release)(ctx_buffer answer);
    /* The answer to the running call is no longer needed: return one soon. */
    void (*cancel)(void *engine);
    void (*destroy)(void *engine);
} ctx_engine_table_v1;

#if defined(_WIN32)
#define CTX_EXPORT __declspec(dllexport)
#else
#define CTX_EXPORT __attribute__((visibility("default")))
#endif

/* The entry point. */
CTX_EXPORT const ctx_engine_table_v1 *ctx_engine_v1(void);

#ifdef __cplusplus
}
#endif

#endif
