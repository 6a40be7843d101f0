/* SPDX-License-Identifier: MIT */
/* ZIP archives, stored entries only. Layout, all numbers little-endian:
 *
 *     for each entry: a local header of 30 bytes, its name, an extra field, its data
 *     for each entry: a directory header of 46 bytes, its name, extra field and comment
 *     22 bytes: how many entries, where the directory starts and how long it is
 *
 * npy.c writes and reads .npz files with it. Invariant of the reader: no offset or length of the
 * file is believed before it was compared with the number of bytes there are. */
#include "base/format/zip.h"

#include <string.h>

enum { LOCAL = 30, CENTRAL = 46, END = 22 };
enum { SIGN_LOCAL = 0x04034b50, SIGN_CENTRAL = 0x02014b50, SIGN_END = 0x06054b50 };
enum { VERSION = 20, DATE = 0x21 }; /* 2.0; 1 January 1980, the first date there is */

/* CRC-32 (IEEE 802.3, reflected polynomial 0xedb88320), as ZIP wants it; our own files have
 * CRC-32C. Four bits at a time: entries are small. */
static uint32_t crc32_of(uint32_t so_far, const void *data, size_t n)
{
    uint32_t table[16], crc = ~so_far;
    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int bit = 0; bit < 4; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static void put(struct opc_text *out, uint64_t value, int bytes)
{
    char at[8];
    for (int i = 0; i < bytes; i++)
        at[i] = (char)(value >> 8 * i & 255);
    opc_text_add_bytes(out, at, (size_t)bytes);
}

static uint32_t get(const char *at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)(unsigned char)at[i] << 8 * i;
    return value;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* What local and directory headers have in common, from the version on. */
static void put_common(struct opc_text *out, uint32_t crc, size_t bytes, size_t name)
{
    put(out, VERSION, 2);
    put(out, 0, 2); /* flags */
    put(out, 0, 2); /* method: stored */
    put(out, 0, 2); /* time */
    put(out, DATE, 2);
    put(out, crc, 4);
    put(out, bytes, 4); /* as stored, ... */
    put(out, bytes, 4); /* ... and as it was: the same */
    put(out, name, 2);
    put(out, 0, 2); /* extra field */
}

void opc_zip_add(struct opc_zip *zip, const char *name, const void *head, size_t head_bytes,
                 const void *data, size_t bytes)
{
    const size_t at = zip->bytes.used, n = strlen(name);
    const uint32_t crc = crc32_of(crc32_of(0, head, head_bytes), data, bytes);
    /* the entry */
    put(&zip->bytes, SIGN_LOCAL, 4);
    put_common(&zip->bytes, crc, head_bytes + bytes, n);
    opc_text_add_bytes(&zip->bytes, name, n);
    opc_text_add_bytes(&zip->bytes, head, head_bytes);
    if (bytes) /* data may be NULL without */
        opc_text_add_bytes(&zip->bytes, data, bytes);
    /* and its line in the directory */
    put(&zip->directory, SIGN_CENTRAL, 4);
    put(&zip->directory, VERSION, 2); /* made by */
    put_common(&zip->directory, crc, head_bytes + bytes, n);
    put(&zip->directory, 0, 2); /* comment */
    put(&zip->directory, 0, 2); /* disk */
    put(&zip->directory, 0, 2); /* attributes, inner and outer */
    put(&zip->directory, 0, 4);
    put(&zip->directory, at, 4);
    opc_text_add_bytes(&zip->directory, name, n);
    zip->entries++;
}

int opc_zip_finish(struct opc_zip *zip, struct opc_err *err)
{
    const size_t at = zip->bytes.used, n = zip->directory.used;
    OPC_TRY(opc_text_check(&zip->directory, err));
    opc_text_add_bytes(&zip->bytes, opc_text_get(&zip->directory), n);
    put(&zip->bytes, SIGN_END, 4);
    put(&zip->bytes, 0, 4); /* the number of this disk, and of the directory's */
    put(&zip->bytes, (uint64_t)zip->entries, 2);
    put(&zip->bytes, (uint64_t)zip->entries, 2);
    put(&zip->bytes, n, 4);
    put(&zip->bytes, at, 4);
    put(&zip->bytes, 0, 2); /* comment */
    OPC_TRY(opc_text_check(&zip->bytes, err));
    if (zip->bytes.used > UINT32_MAX || zip->entries > UINT16_MAX)
        return opc_fail(err, OPC_EUSER,
                        "%zu bytes in %d entries are more than an archive holds (4 GB, 65535)",
                        zip->bytes.used, zip->entries);
    return OPC_OK;
}

void opc_zip_free(struct opc_zip *zip)
{
    opc_text_free(&zip->bytes);
    opc_text_free(&zip->directory);
    *zip = (struct opc_zip){0};
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The end record: the last place with its sign, because a comment of any bytes may follow it. */
static const char *find_end(const char *bytes, size_t n)
{
    const size_t longest = 65535; /* comment */
    if (n < END)
        return NULL;
    for (size_t back = END; back <= n && back <= END + longest; back++)
        if (get(bytes + n - back, 4) == SIGN_END)
            return bytes + n - back;
    return NULL;
}

/* One line of the directory, and the entry it leads to. */
static int read_entry(const char *bytes, size_t n, const char *line, struct opc_zip_entry *out,
                      struct opc_err *err)
{
    const uint32_t method = get(line + 10, 2), crc = get(line + 16, 4), size = get(line + 20, 4),
                   name = get(line + 28, 2), at = get(line + 42, 4);
    if (name == 0 || name >= sizeof out->name)
        return opc_fail(err, OPC_EUSER, "it has an entry with a name of %u bytes; 1 to %zu will do",
                        (unsigned)name, sizeof out->name - 1);
    memcpy(out->name, line + CENTRAL, name);
    out->name[name] = '\0';
    if (method != 0)
        return opc_fail(err, OPC_EUSER,
                        "its entry %s is compressed; only stored entries are read (numpy.savez, "
                        "and not savez_compressed)",
                        out->name);
    if (size == UINT32_MAX || at == UINT32_MAX)
        return opc_fail(err, OPC_EUSER, "its entry %s has 4 GB or more; divide it", out->name);
    /* Name and extra field of the local header may differ from the directory's in length. */
    if (at > n || n - at < LOCAL || get(bytes + at, 4) != SIGN_LOCAL)
        return opc_fail(err, OPC_EDAMAGED, "its entry %s is not where its directory says",
                        out->name);
    const size_t first = LOCAL + (size_t)get(bytes + at + 26, 2) + get(bytes + at + 28, 2);
    if (first > n - at || size > n - at - first)
        return opc_fail(err, OPC_EDAMAGED, "its entry %s is cut short", out->name);
    out->data = bytes + at + first;
    out->bytes = size;
    if (crc32_of(0, out->data, size) != crc)
        return opc_fail(err, OPC_EDAMAGED, "the checksum of its entry %s does not match",
                        out->name);
    return OPC_OK;
}

int opc_zip_read(const char *bytes, size_t n, struct opc_zip_entry out[OPC_ZIP_MAX], int *entries,
                 struct opc_err *err)
{
    const char *end = find_end(bytes, n);
    if (!end)
        return opc_fail(err, OPC_EUSER, "it is not a ZIP archive, or it is cut short");
    const int count = (int)get(end + 10, 2);
    size_t at = get(end + 16, 4);
    const size_t limit = (size_t)(end - bytes);
    if (count > OPC_ZIP_MAX)
        return opc_fail(err, OPC_EUSER, "it has %d entries; at most %d are read", count,
                        OPC_ZIP_MAX);
    for (int i = 0; i < count; i++) {
        if (at > limit || limit - at < CENTRAL || get(bytes + at, 4) != SIGN_CENTRAL)
            return opc_fail(err, OPC_EDAMAGED, "its directory ends after %d of %d entries", i,
                            count);
        const char *line = bytes + at;
        const size_t length =
            CENTRAL + (size_t)get(line + 28, 2) + get(line + 30, 2) + get(line + 32, 2);
        if (length > limit - at)
            return opc_fail(err, OPC_EDAMAGED, "its directory ends within entry %d of %d", i + 1,
                            count);
        OPC_TRY(read_entry(bytes, n, line, &out[i], err));
        at += length;
    }
    *entries = count;
    return OPC_OK;
}
