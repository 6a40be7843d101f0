/* SPDX-License-Identifier: MIT */
/* Configuration files from hostile hands: reading never goes astray, a refusal has a reason, and
 * what is accepted, printed and read again, is the same. */
#include "run/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_config: %s\n", what);
    abort();
}

static int read(const char *text, size_t n, struct opc_values *out, struct opc_err *err)
{
    struct opc_sources *s;
    must(!opc_sources_create(&s, err), "the defaults are refused");
    int code = opc_sources_parse(s, "/nowhere/fuzz.yaml", text, n, err);
    if (!code)
        code = opc_sources_resolve(s, out, err);
    opc_sources_destroy(s);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct opc_values first, second;
    struct opc_err err = {0};
    if (read((const char *)data, size, &first, &err)) {
        must(*err.text, "a refusal without a reason");
        return 0;
    }
    struct opc_text text = {0};
    opc_values_print(&first, &text);
    must(!read(opc_text_get(&text), text.used, &second, &err), "what was printed is refused");
    must(!memcmp(&first, &second, sizeof first), "printing changed a value");
    opc_text_free(&text);
    return 0;
}
