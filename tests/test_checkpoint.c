/* SPDX-License-Identifier: MIT */
#include "run/files/checkpoint.h"

#include "base/file.h"
#include "base/format/crc.h"
#include "opc/mem.h"
#include "test.h"

static const char WORDS[] = "a short text";
static const double NUMBERS[5] = {1, -2.5, 1e300, 0, 0.1};

/* Four sections: text whose length is no multiple of 8, numbers in two pieces, nothing, a byte. */
enum { PARTS = 5, SECTIONS = 4 };
static const struct opc_named part[PARTS] = {
    {"words", WORDS, sizeof WORDS},
    {"numbers", NUMBERS, 2 * sizeof *NUMBERS},
    {"", NUMBERS + 2, 3 * sizeof *NUMBERS},
    {"none", NULL, 0},
    {"byte", "x", 1},
};

static const char *path_in(void **state)
{
    static char path[OPC_PATH];
    snprintf(path, sizeof path, "%s/x.opc", (const char *)*state);
    return path;
}

static const char *save(void **state)
{
    struct opc_err err;
    const char *path = path_in(state);
    assert_ok(opc_checkpoint_save(path, OPC_PACK_RUN, 0xabcd1234, 77, part, PARTS, &err), &err);
    return path;
}

static void what_was_saved_is_loaded(void **state)
{
    struct opc_pack *pack;
    struct opc_err err;
    char words[sizeof WORDS];
    double numbers[5];
    assert_ok(opc_checkpoint_load(save(state), OPC_PACK_RUN, &pack, &err), &err);
    assert_int_equal(pack->hash, 0xabcd1234);
    assert_int_equal(pack->epoch, 77);
    assert_int_equal(pack->parts, SECTIONS);
    assert_ok(opc_pack_get(pack, "words", words, sizeof words, &err), &err);
    assert_string_equal(words, WORDS);
    assert_ok(opc_pack_visit(pack, "numbers", numbers, sizeof numbers, &err), &err);
    assert_same_bits(numbers, NUMBERS, sizeof numbers);
    assert_int_equal(opc_pack_find(pack, "none")->bytes, 0);
    assert_null(opc_pack_find(pack, "more"));
    assert_fails(opc_pack_get(pack, "more", words, 1, &err), OPC_EDAMAGED, &err, "more");
    assert_fails(opc_pack_get(pack, "words", words, 5, &err), OPC_EDAMAGED, &err, "words");
    assert_mentions(&err, "13");
    opc_pack_free(pack);
}

/* In a block of exactly its size, so that the sanitizer sees one byte too many. */
static int parse(const char *bytes, size_t n, struct opc_err *err)
{
    struct opc_pack *pack;
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    const int code = opc_pack_parse("file", copy, n, &pack, err);
    if (!code)
        opc_pack_free(pack);
    free(copy);
    return code;
}

static void every_flipped_bit_is_detected(void **state)
{
    char *bytes;
    size_t n;
    struct opc_err err;
    assert_ok(opc_file_read(save(state), 100000, &bytes, &n, &err), &err);
    assert_ok(parse(bytes, n, &err), &err);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        err.text[0] = '\0';
        if (parse(bytes, n, &err) != OPC_EDAMAGED || !strstr(err.text, "damaged"))
            fail_msg("bit %zu of byte %zu: %s", bit % 8, bit / 8, err.text);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    opc_free(bytes);
}

static void every_truncation_and_every_addition_is_detected(void **state)
{
    char *bytes, *longer;
    size_t n;
    struct opc_err err;
    assert_ok(opc_file_read(save(state), 100000, &bytes, &n, &err), &err);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(parse(bytes, cut, &err), OPC_EDAMAGED);
    longer = calloc(n + 64, 1);
    memcpy(longer, bytes, n);
    for (size_t more = 1; more <= 64; more++)
        assert_int_equal(parse(longer, n + more, &err), OPC_EDAMAGED);
    free(longer);
    opc_free(bytes);
}

static void something_else_is_refused_in_words(void **state)
{
    struct opc_pack *pack;
    struct opc_err err;
    const char *path = save(state);
    assert_fails(opc_checkpoint_load(path, OPC_PACK_POLICY, &pack, &err), OPC_EDAMAGED, &err, path);
    assert_mentions(&err, "policy");

    assert_ok(opc_file_write(path, "#!/bin/sh\n", 10, &err), &err);
    assert_fails(opc_checkpoint_load(path, OPC_PACK_RUN, &pack, &err), OPC_EDAMAGED, &err, path);
    assert_mentions(&err, "start");

    unlink(path);
    assert_int_equal(opc_checkpoint_load(path, OPC_PACK_RUN, &pack, &err), OPC_EUSER);
}

/* A header that is whole but says version 2: written by a later program. */
static void another_version_is_refused_in_words(void **state)
{
    static const unsigned char HEADER[48] = {'O', 'P', 'C', 'P', 'A', 'C', 'K', '\n', 2, 0, 0, 0, 1,
                                             0,   0,   0,   0,   0,   0,   0,   0,    0, 0, 0, 48};
    (void)state;
    struct opc_err err = {0};
    unsigned char header[48];
    memcpy(header, HEADER, sizeof header);
    const uint32_t crc = opc_crc32c(0, header, 44);
    for (int i = 0; i < 4; i++)
        header[44 + i] = (unsigned char)(crc >> 8 * i);
    assert_fails(parse((const char *)header, sizeof header, &err), OPC_EUSER, &err, "format 2");
    assert_mentions(&err, "format 1");
}

static int create(void *ctx, struct opc_err *err)
{
    struct opc_pack *pack;
    int code = opc_checkpoint_save(ctx, OPC_PACK_RUN, 1, 2, part, PARTS, err);
    if (!code)
        code = opc_checkpoint_load(ctx, OPC_PACK_RUN, &pack, err);
    if (!code)
        opc_pack_free(pack);
    return code;
}

static void lack_of_memory_and_failing_files_are_survived(void **state)
{
    char path[OPC_PATH];
    snprintf(path, sizeof path, "%s", path_in(state));
    assert_survives_lack_of_memory(create, path);
    assert_survives_system_faults(create, path);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(what_was_saved_is_loaded),
        WITH_DIR(every_flipped_bit_is_detected),
        WITH_DIR(every_truncation_and_every_addition_is_detected),
        WITH_DIR(something_else_is_refused_in_words),
        cmocka_unit_test(another_version_is_refused_in_words),
        WITH_DIR(lack_of_memory_and_failing_files_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
