/* Loads the library of an engine as a host does, passes each line of stdin to it as a call, and prints
 * the answers. */
#include "ctx_engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int32_t no_services(void *context, ctx_bytes request, ctx_buffer *reply) {
    (void)context, (void)request, (void)reply;
    return CTX_MISUSED;
}

static void nothing(void *context, ctx_buffer reply) { (void)context, (void)reply; }

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
    const ctx_engine_table_v1 *(*entry)(void);
    *(void **)&entry = dlsym(library, "ctx_engine_v1");
    if (!entry) return fprintf(stderr, "missing symbol ctx_engine_v1\n"), 2;
    const ctx_engine_table_v1 *table = entry();
    if (table->size < sizeof *table || table->abi != CTX_ENGINE_ABI) return 3;
    const ctx_host_v1 host = {sizeof host, NULL, no_services, nothing};
    void *engine = NULL;
    if (table->create(&host, &engine) != CTX_OK || table->create(NULL, &engine) != CTX_MISUSED)
        return 4;
    static char line[1 << 20];
    while (fgets(line, sizeof line, stdin)) {
        ctx_buffer answer = {0};
        ctx_bytes call = {(const uint8_t *)line, strcspn(line, "\n")};
        if (table->call(engine, call, &answer) != CTX_OK) return 5;
        fwrite(answer.data, 1, answer.len, stdout);
        putchar('\n');
        table->release(answer);
    }
    table->cancel(engine);
    table->destroy(engine);
    return 0;
}
