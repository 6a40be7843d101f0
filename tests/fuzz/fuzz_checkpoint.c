/* SPDX-License-Identifier: MIT */
/* Checkpoints from hostile hands. Random bytes never pass the checks, so the checks of the input
 * are made right first: what is then accepted must lie within the file. */
#include "base/format/crc.h"
#include "run/files/checkpoint.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 48, SECTION = 64 };

static void put(char *at, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (char)(v >> 8 * i & 0xff);
}

static uint64_t get(const char *at, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)(unsigned char)at[i] << 8 * i;
    return v;
}

static void make_right(char *file, size_t n)
{
    if (n < HEADER)
        return;
    memcpy(file, "OPCPACK\n\1\0\0\0", 12);
    put(file + 12, get(file + 12, 1) % 5, 4);
    put(file + 20, get(file + 20, 1) % 8, 4);
    put(file + 24, n, 8);
    put(file + 44, opc_crc32c(0, file, 44), 4);
    for (size_t at = HEADER; at + SECTION <= n;) {
        uint64_t bytes = get(file + at + 48, 8);
        if (file[at + 47] & 1) /* often small, sometimes anything */
            put(file + at + 48, bytes = bytes % 256, 8);
        const uint64_t padded = (bytes + 7) / 8 * 8;
        if (padded <= n - at - SECTION && padded >= bytes)
            put(file + at + 56, opc_crc32c(0, file + at + SECTION, (size_t)padded), 4);
        put(file + at + 60, opc_crc32c(0, file + at, 60), 4);
        if (padded > n - at - SECTION || padded < bytes)
            break;
        at += SECTION + (size_t)padded;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *file = malloc(size ? size : 1); /* its own block, for the sanitizer */
    struct opc_pack *pack;
    struct opc_err err = {0};
    if (!file)
        return 0;
    for (int right = 0; right < 2; right++) {
        memcpy(file, data, size);
        if (right)
            make_right(file, size);
        if (opc_pack_parse("fuzz", file, size, &pack, &err)) {
            if (!*err.text)
                abort();
            continue;
        }
        for (int i = 0; i < pack->parts; i++) {
            const struct opc_named *part = &pack->part[i];
            char *copy = malloc(part->bytes ? part->bytes : 1);
            if (!copy || !memchr(part->name, '\0', sizeof part->name))
                abort();
            if (strlen(part->name) > 0 && opc_pack_find(pack, part->name) == part &&
                opc_pack_get(pack, part->name, copy, part->bytes, &err))
                abort();
            free(copy);
        }
        opc_pack_free(pack);
    }
    free(file);
    return 0;
}
