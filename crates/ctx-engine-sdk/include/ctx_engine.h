/* The C ABI of a context engine. License: MIT OR Apache-2.0.
 *
 * A library has one entry, ctx_engine_v1(). It returns a table that lives as long as the process;
 * a library is never unloaded.
 *
 * Rules
 *  - Tables begin with their size and are only ever appended to. Look at the size before you touch
 *    a field: the other side may be older.
 *  - Bytes go in, bytes come out: JSON, as the protocol of ctx-engine-sdk has it. ctx_bytes are
 *    lent for the time of the call. A ctx_buffer is freed by who allocated it, through the
 *    `release` beside the function that gave it.
 *  - Calls on one engine come one at a time, from any thread. Only `cancel` may come from another
 *    thread while a call is at work.
 *  - Host services may be asked for only from inside a call, on its thread.
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

/* What functions return. */
#define CTX_OK 0       /* answered: also an error is an answer, as JSON */
#define CTX_PANICKED 1 /* the engine is not to be used again */
#define CTX_MISUSED 2  /* the caller broke a rule */

/* Lent bytes. */
typedef struct ctx_bytes {
    const uint8_t *data;
    size_t len;
} ctx_bytes;

/* Bytes that were allocated for the other side. */
typedef struct ctx_buffer {
    uint8_t *data;
    size_t len;
    size_t capacity; /* for their owner; nobody else looks at it */
} ctx_buffer;

/* What a host gives to an engine. */
typedef struct ctx_host_v1 {
    size_t size;   /* sizeof(ctx_host_v1) of the host */
    void *context; /* the host's own: pass it back */
    /* {"id","host","params"} in, {"id","reply"} or {"id","error"} out */
    int32_t (*call)(void *context, ctx_bytes request, ctx_buffer *reply);
    void (*release)(void *context, ctx_buffer reply);
} ctx_host_v1;

/* What a library gives to its host. */
typedef struct ctx_engine_table_v1 {
    size_t size;  /* sizeof(ctx_engine_table_v1) of the library */
    uint32_t abi; /* CTX_ENGINE_ABI */
    /* Makes an engine. The host's table lives as long as the engine. */
    int32_t (*create)(const ctx_host_v1 *host, void **engine);
    /* {"id","verb","params"} in, {"id","ok"} or {"id","error"} out */
    int32_t (*call)(void *engine, ctx_bytes call, ctx_buffer *answer);
    void (*release)(ctx_buffer answer);
    /* The answer to the call at work is not needed any more: give one soon. */
    void (*cancel)(void *engine);
    void (*destroy)(void *engine);
} ctx_engine_table_v1;

#if defined(_WIN32)
#define CTX_EXPORT __declspec(dllexport)
#else
#define CTX_EXPORT __attribute__((visibility("default")))
#endif

/* The entry. */
CTX_EXPORT const ctx_engine_table_v1 *ctx_engine_v1(void);

#ifdef __cplusplus
}
#endif

#endif
