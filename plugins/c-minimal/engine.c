/* A context engine in plain C: keeps all messages while they fit, else the newest ones that fit half
 * of the budget.
 *
 * It needs no JSON library. In a call it looks for two members of the outermost object, "id" and
 * "verb", and for the sizes of the rows and of the budget. The host keeps protected messages, and never
 * separates tool calls from their results, so an engine can be this small.
 */
#include "ctx_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A position in the bytes of a call. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c) {
    while (c->at < c->end && strchr(" \t\r\n", *c->at) && *c->at) c->at++;
}

/* Skips a string, and returns the text between its quotes. */
static int read_string(cursor *c, const char **text, size_t *len) {
    if (c->at >= c->end || *c->at != '"') return 0;
    *text = ++c->at;
    while (c->at < c->end && *c->at != '"')
        c->at += *c->at == '\\' && c->at + 1 < c->end ? 2 : 1;
    if (c->at >= c->end) return 0;
    *len = (size_t)(c->at++ - *text);
    return 1;
}

/* Skips a value, up to the comma or brace after it. It is not recursive, so deep nesting needs no
 * stack. */
static int skip_value(cursor *c) {
    const char *text;
    size_t len, depth = 0;
    while (c->at < c->end) {
        char byte = *c->at;
        if (byte == '"') {
            if (!read_string(c, &text, &len)) return 0;
            continue;
        }
        if (depth == 0 && (byte == ',' || byte == '}')) return 1;
        if (byte == '{' || byte == '[') depth++;
        if (byte == '}' || byte == ']') depth--;
        c->at++;
    }
    return 0;
}

/* Finds "id" and "verb" of the outermost object, in any order. */
static int read_call(ctx_bytes call, unsigned long long *id, const char **verb, size_t *verb_len) {
    cursor c = {(const char *)call.data, (const char *)call.data + call.len};
    int found = 0;
    skip_space(&c);
    if (c.at >= c.end || *c.at++ != '{') return 0;
    while (found != 3) {
        const char *name;
        size_t len;
        skip_space(&c);
        if (!read_string(&c, &name, &len)) return 0;
        skip_space(&c);
        if (c.at >= c.end || *c.at++ != ':') return 0;
        skip_space(&c);
        if (len == 2 && memcmp(name, "id", 2) == 0) {
            for (*id = 0; c.at < c.end && *c.at >= '0' && *c.at <= '9'; c.at++)
                *id = *id * 10 + (unsigned long long)(*c.at - '0');
            found |= 1;
        } else if (len == 4 && memcmp(name, "verb", 4) == 0) {
            if (!read_string(&c, verb, verb_len)) return 0;
            found |= 2;
        } else if (!skip_value(&c)) {
            return 0;
        }
        skip_space(&c);
        if (found != 3 && (c.at >= c.end || *c.at++ != ',')) return 0;
    }
    return 1;
}

static int is(const char *verb, size_t len, const char *name) {
    return len == strlen(name) && memcmp(verb, name, len) == 0;
}

/* Finds the next `name`, which includes its quotes and colon, and reads the number after it. Returns 0 if
 * there is no further one. Quotes inside a string are escaped, so text of a user does not match. */
static int next_number(cursor *c, const char *name, unsigned long long *number) {
    size_t len = strlen(name);
    for (; (size_t)(c->end - c->at) > len; c->at++) {
        if (*c->at != '"' || memcmp(c->at, name, len) != 0) continue;
        c->at += len;
        skip_space(c);
        for (*number = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
            *number = *number * 10 + (unsigned long long)(*c->at - '0');
        return 1;
    }
    return 0;
}

/* Returns the number of newest rows to keep. */
static unsigned long long keep_last(ctx_bytes call) {
    const cursor whole = {(const char *)call.data, (const char *)call.data + call.len};
    unsigned long long tokens, room = 0, total = 0, rows = 0;
    cursor c = whole;
    next_number(&c, "\"messages\":", &room);
    for (c = whole; next_number(&c, "\"tokens\":", &tokens); rows++) total += tokens;
    if (total > room)
        for (c = whole; total > room / 2 && next_number(&c, "\"tokens\":", &tokens); rows--)
            total -= tokens;
    return rows;
}

static const char *answer_to(const char *verb, size_t len) {
    if (is(verb, len, "hello"))
        return "\"ok\":{\"protocol\":\"1.0\",\"id\":\"c-minimal\",\"name\":\"c-minimal\","
               "\"version\":\"0.1.0\",\"contents\":false,\"ownsCompaction\":false,\"verbs\":[]}";
    if (is(verb, len, "ingest")) return "\"ok\":{\"ingested\":true}";
    if (is(verb, len, "compact"))
        return "\"ok\":{\"ok\":false,\"compacted\":false,"
               "\"reason\":\"c-minimal leaves compaction to its host\"}";
    if (is(verb, len, "dispose")) return "\"ok\":{}";
    return "\"error\":{\"kind\":\"unsupported\",\"message\":\"unknown verb\"}";
}

/* The engine has no state, but the host expects an address. */
static char nothing;

static int32_t create(const ctx_host_v1 *host, void **engine) {
    if (!host || !engine) return CTX_MISUSED;
    *engine = &nothing;
    return CTX_OK;
}

static int32_t call(void *engine, ctx_bytes bytes, ctx_buffer *answer) {
    unsigned long long id = 0;
    const char *verb = NULL, *result = NULL;
    size_t verb_len = 0;
    if (!engine || !answer || (!bytes.data && bytes.len)) return CTX_MISUSED;
    if (bytes.len && read_call(bytes, &id, &verb, &verb_len))
        result = is(verb, verb_len, "assemble") ? NULL : answer_to(verb, verb_len);
    else
        result = "\"error\":{\"kind\":\"badRequest\",\"message\":\"missing id or verb\"}";
    /* Enough for two numbers of at most twenty digits, the names, the braces and the terminator. */
    size_t capacity = (result ? strlen(result) : 0) + 80;
    char *text = malloc(capacity);
    if (!text) return CTX_PANICKED;
    int len = result ? snprintf(text, capacity, "{\"id\":%llu,%s}", id, result)
                     : snprintf(text, capacity, "{\"id\":%llu,\"ok\":{\"keepLast\":%llu}}", id,
                                keep_last(bytes));
    answer->data = (uint8_t *)text;
    answer->len = (size_t)len;
    answer->capacity = capacity;
    return CTX_OK;
}

static void release(ctx_buffer answer) { free(answer.data); }

/* Calls return at once, so there is nothing to cancel. */
static void cancel(void *engine) { (void)engine; }

static void destroy(void *engine) { (void)engine; }

const ctx_engine_table_v1 *ctx_engine_v1(void) {
    static const ctx_engine_table_v1 table = {sizeof(ctx_engine_table_v1), CTX_ENGINE_ABI, create,
                                              call, release, cancel, destroy};
    return &table;
}
