/* SPDX-License-Identifier: MIT */
/* Archives of arrays from hostile hands: what is accepted must lie within the file. A checksum that
 * fails would hide what is behind it, so an input is also read as a single array. */
#include "base/format/npy.h"

#include <stdlib.h>
#include <string.h>

/* The first and the last element are where the array says. */
static void touch(const struct opc_zip_entry *entry)
{
    struct opc_npy array;
    struct opc_err err = {0};
    if (opc_npy_parse(entry, &array, &err)) {
        if (!*err.text)
            abort();
        return;
    }
    const size_t n = opc_npy_count(&array);
    if (n > 0) {
        volatile double sink = opc_npy_at(&array, 0) + opc_npy_at(&array, n - 1);
        (void)sink;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct opc_zip_entry entry[OPC_ZIP_MAX];
    struct opc_err err = {0};
    int entries = 0;
    char *file = malloc(size ? size : 1); /* its own block, for the sanitizer */
    if (!file)
        return 0;
    memcpy(file, data, size);
    if (!opc_zip_read(file, size, entry, &entries, &err))
        for (int i = 0; i < entries; i++)
            touch(&entry[i]);
    else if (!*err.text)
        abort();
    touch(&(struct opc_zip_entry){.name = "x.npy", .data = file, .bytes = size});
    free(file);
    return 0;
}
