/* SPDX-License-Identifier: MIT */
/* Reads and writes files of named sections; save.c and restore.c say what is in them, and
 * docs/checkpoint-format.md describes them for other programs.
 *
 * Invariant: a file is accepted whole or not at all. Every byte is covered by a checksum, and every
 * length is checked before it is used, because the file may be damaged or made up.
 *
 * Layout, all numbers little-endian:
 *
 *     header    0  magic "OPCPACK\n"         section   0  name, padded with zeros to 48 bytes
 *               8  version       u32                  48  bytes of its data      u64
 *              12  kind          u32                  56  CRC-32C of the data    u32
 *              16  settings hash u32                  60  CRC-32C of 0 .. 59     u32
 *              20  sections      u32                  64  data, padded with zeros to a multiple
 *              24  file length   u64                      of 8; the padding is part of the CRC
 *              32  epoch         u64
 *              40  zero          u32
 *              44  CRC-32C of 0 .. 43
 *
 * The sections follow the header and each other without gaps, and the file ends with the last.
 * Data are stored as they were in memory. */
#include "run/files/checkpoint.h"

#include "base/file.h"
#include "base/format/crc.h"
#include "opc/mem.h"

#include <stdio.h>
#include <string.h>

static const char MAGIC[8] = "OPCPACK\n";
enum { VERSION = 1, HEADER = 48, SECTION = 64, EVEN = 8 };
static const size_t MAX_BYTES = (size_t)1 << 36;
static const char ZEROS[EVEN];

/* by enum opc_pack_kind, for messages */
static const char *const KIND[] = {"",        "checkpoint", "policy",          "snapshot",
                                   "segment", "model",      "file of episodes"};
enum { KINDS = sizeof KIND / sizeof *KIND };

static size_t padded(size_t n)
{
    return (n + EVEN - 1) / EVEN * EVEN;
}

/* Numbers of the layout, byte by byte, so that they are the same on every machine. */
static void put_number(char *at, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (char)(v >> 8 * i & 0xff);
}

static uint64_t get_number(const char *at, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)(unsigned char)at[i] << 8 * i;
    return v;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_header(char at[HEADER], enum opc_pack_kind kind, uint32_t hash, uint64_t epoch,
                       int sections, uint64_t length)
{
    memset(at, 0, HEADER);
    memcpy(at, MAGIC, sizeof MAGIC);
    put_number(at + 8, VERSION, 4);
    put_number(at + 12, (uint64_t)kind, 4);
    put_number(at + 16, hash, 4);
    put_number(at + 20, (uint64_t)sections, 4);
    put_number(at + 24, length, 8);
    put_number(at + 32, epoch, 8);
    put_number(at + 44, opc_crc32c(0, at, 44), 4);
}

/* A section may be gathered from several pieces of memory: those after the first have no name.
 * Returns how many pieces the section that starts at `part` has, and its bytes. */
static int section_pieces(const struct opc_named *part, int left, size_t *bytes)
{
    int n = 1;
    *bytes = part->bytes;
    for (; n < left && !part[n].name[0]; n++)
        *bytes += part[n].bytes;
    return n;
}

/* The head of a section; its checksum covers the zeros after the data, too. */
static void put_section(char at[SECTION], const struct opc_named *part, int n, size_t bytes)
{
    uint32_t crc = 0;
    for (int i = 0; i < n; i++)
        crc = opc_crc32c(crc, part[i].data, part[i].bytes);
    memset(at, 0, SECTION);
    memcpy(at, part->name, strlen(part->name));
    put_number(at + 48, bytes, 8);
    put_number(at + 56, opc_crc32c(crc, ZEROS, padded(bytes) - bytes), 4);
    put_number(at + 60, opc_crc32c(0, at, 60), 4);
}

int opc_checkpoint_save(const char *path, enum opc_pack_kind kind, uint32_t hash, uint64_t epoch,
                        const struct opc_named *part, int parts, struct opc_err *err)
{
    /* The header holds the length of the file, so all sections are measured first. */
    char header[HEADER], section[SECTION];
    uint64_t length = HEADER;
    int sections = 0;
    size_t bytes;
    for (int i = 0; i < parts; i += section_pieces(part + i, parts - i, &bytes), sections++) {
        section_pieces(part + i, parts - i, &bytes);
        length += SECTION + padded(bytes);
    }

    /* Written under a temporary name, which opc_save_end renames when all is on disk. */
    struct opc_save *file;
    const int code = opc_save_begin(path, &file, err);
    if (code)
        return code;
    put_header(header, kind, hash, epoch, sections, length);
    opc_save_bytes(file, header, HEADER);
    for (int i = 0; i < parts;) {
        const int n = section_pieces(part + i, parts - i, &bytes);
        put_section(section, part + i, n, bytes);
        opc_save_bytes(file, section, SECTION);
        for (const int end = i + n; i < end; i++)
            opc_save_bytes(file, part[i].data, part[i].bytes);
        opc_save_bytes(file, ZEROS, padded(bytes) - bytes);
    }
    return opc_save_end(file, err);
}

int opc_gather_visit(void *ctx, const char *name, void *data, size_t bytes, struct opc_err *err)
{
    struct opc_gather *gather = ctx;
    if (gather->parts == OPC_PACK_MAX)
        return opc_fail(err, OPC_EBUG, "more than %d sections", OPC_PACK_MAX);
    struct opc_named *part = &gather->part[gather->parts];
    if (snprintf(part->name, sizeof part->name, "%s", name) >= (int)sizeof part->name)
        return opc_fail(err, OPC_EBUG, "the section name %s is too long", name);
    part->data = data;
    part->bytes = bytes;
    gather->parts++;
    return OPC_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int check_header(const char *name, const char *at, size_t n, struct opc_pack *pack,
                        struct opc_err *err)
{
    /* First what tells a foreign file from a damaged one, then the checksum, then the version. */
    if (n < sizeof MAGIC || memcmp(at, MAGIC, sizeof MAGIC) != 0)
        return opc_fail(err, OPC_EDAMAGED,
                        "%s is damaged, or not a file of opc: it does not start "
                        "as one",
                        name);
    if (n < HEADER)
        return opc_fail(err, OPC_EDAMAGED, "%s is damaged: it ends after %zu bytes", name, n);
    if (get_number(at + 44, 4) != opc_crc32c(0, at, 44))
        return opc_fail(err, OPC_EDAMAGED, "%s is damaged: its header fails the check", name);
    if (get_number(at + 8, 4) != VERSION)
        return opc_fail(err, OPC_EUSER,
                        "%s has format %u, this program reads format %d; use the version of opc "
                        "that wrote it",
                        name, (unsigned)get_number(at + 8, 4), VERSION);
    /* The checksum is right, so wrong values were written so, or made up. */
    const uint64_t kind = get_number(at + 12, 4), sections = get_number(at + 20, 4),
                   length = get_number(at + 24, 8);
    if (kind == 0 || kind >= KINDS || sections > OPC_PACK_MAX)
        return opc_fail(err, OPC_EDAMAGED, "%s is damaged: its header makes no sense", name);
    if (length != n)
        return opc_fail(err, OPC_EDAMAGED, "%s is damaged: %zu bytes instead of %llu", name, n,
                        (unsigned long long)length);
    pack->kind = (enum opc_pack_kind)kind;
    pack->hash = (uint32_t)get_number(at + 16, 4);
    pack->epoch = get_number(at + 32, 8);
    pack->parts = (int)sections;
    return OPC_OK;
}

static int check_section(const char *name, const char *at, size_t left, int i,
                         struct opc_named *out, struct opc_err *err)
{
    /* The head must be whole before its length is believed. */
    if (left < SECTION)
        return opc_fail(err, OPC_EDAMAGED, "%s is damaged: it ends before section %d", name, i + 1);
    if (get_number(at + 60, 4) != opc_crc32c(0, at, 60) || memchr(at, '\0', OPC_PACK_NAME) == NULL)
        return opc_fail(err, OPC_EDAMAGED, "%s is damaged: the head of section %d fails the check",
                        name, i + 1);
    memcpy(out->name, at, OPC_PACK_NAME);
    /* padded() of a huge length could wrap around to a small one: compare the length itself, too */
    const uint64_t bytes = get_number(at + 48, 8);
    if (bytes > left - SECTION || padded((size_t)bytes) > left - SECTION)
        return opc_fail(err, OPC_EDAMAGED, "%s is damaged: it ends within section %s", name,
                        out->name);
    out->bytes = (size_t)bytes;
    out->data = at + SECTION;
    if (get_number(at + 56, 4) != opc_crc32c(0, out->data, padded(out->bytes)))
        return opc_fail(err, OPC_EDAMAGED, "%s is damaged: section %s fails the check", name,
                        out->name);
    return OPC_OK;
}

static int check_pack(const char *name, const char *bytes, size_t n, struct opc_pack *pack,
                      struct opc_err *err)
{
    int code = check_header(name, bytes, n, pack, err);
    /* Sections follow each other without gaps, up to the last byte of the file. */
    size_t used = HEADER;
    for (int i = 0; i < pack->parts && !code; i++) {
        code = check_section(name, bytes + used, n - used, i, &pack->part[i], err);
        if (!code)
            used += SECTION + padded(pack->part[i].bytes);
    }
    if (!code && used != n)
        code = opc_fail(err, OPC_EDAMAGED, "%s is damaged: %zu bytes follow its last section", name,
                        n - used);
    return code;
}

int opc_pack_parse(const char *name, const char *bytes, size_t n, struct opc_pack **out,
                   struct opc_err *err)
{
    struct opc_pack *pack = opc_alloc(1, sizeof *pack);
    if (!pack)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to read %s", name);
    const int code = check_pack(name, bytes, n, pack, err);
    if (code) {
        opc_pack_free(pack);
        return code;
    }
    *out = pack;
    return OPC_OK;
}

int opc_checkpoint_load(const char *path, enum opc_pack_kind kind, struct opc_pack **out,
                        struct opc_err *err)
{
    char *bytes;
    size_t n;
    struct opc_pack *pack;
    int code = opc_file_read(path, MAX_BYTES, &bytes, &n, err);
    if (code)
        return code;
    code = opc_pack_parse(path, bytes, n, &pack, err);
    if (code) {
        opc_free(bytes);
        return code;
    }
    pack->bytes = bytes;
    if (pack->kind != kind) {
        code =
            opc_fail(err, OPC_EDAMAGED, "%s is a %s, not a %s", path, KIND[pack->kind], KIND[kind]);
        opc_pack_free(pack);
        return code;
    }
    *out = pack;
    return OPC_OK;
}

void opc_pack_free(struct opc_pack *pack)
{
    if (!pack)
        return;
    opc_free(pack->bytes);
    opc_free(pack);
}

const struct opc_named *opc_pack_find(const struct opc_pack *pack, const char *name)
{
    for (int i = 0; i < pack->parts; i++)
        if (strcmp(pack->part[i].name, name) == 0)
            return &pack->part[i];
    return NULL;
}

int opc_pack_get(const struct opc_pack *pack, const char *name, void *data, size_t bytes,
                 struct opc_err *err)
{
    const struct opc_named *part = opc_pack_find(pack, name);
    if (!part)
        return opc_fail(err, OPC_EDAMAGED, "there is no section %s in this %s", name,
                        KIND[pack->kind]);
    if (part->bytes != bytes)
        return opc_fail(err, OPC_EDAMAGED,
                        "section %s has %zu bytes instead of %zu: it was made with other settings",
                        name, part->bytes, bytes);
    memcpy(data, part->data, bytes);
    return OPC_OK;
}

int opc_pack_visit(void *ctx, const char *name, void *data, size_t bytes, struct opc_err *err)
{
    return opc_pack_get(ctx, name, data, bytes, err);
}
