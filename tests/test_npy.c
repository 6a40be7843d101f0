/* SPDX-License-Identifier: MIT */
#include "base/format/npy.h"

#include "base/format/proto.h"
#include "opc/mem.h"
#include "test.h"

static const float FLOATS[6] = {1, -2.5f, 3e30f, 0, 1e-40f, 6};
static const double DOUBLES[2] = {0.1, -1e300};
static const unsigned char BOOLS[3] = {1, 0, 1};

/* Three arrays and texts, as an .npz file. */
static void make(struct opc_zip *zip)
{
    struct opc_err err;
    const char *const words[] = {"relu", "tanh", ""};
    *zip = (struct opc_zip){.entries = 0};
    opc_npz_add(zip, "floats", &(struct opc_npy){OPC_NPY_FLOAT, 2, {2, 3}, FLOATS});
    opc_npz_add(zip, "doubles", &(struct opc_npy){OPC_NPY_DOUBLE, 1, {2}, DOUBLES});
    opc_npz_add(zip, "bools", &(struct opc_npy){OPC_NPY_BOOL, 1, {3}, BOOLS});
    opc_npz_add(zip, "none", &(struct opc_npy){OPC_NPY_FLOAT, 2, {0, 3}, NULL});
    opc_npz_add_texts(zip, "words", 3, words);
    assert_ok(opc_zip_finish(zip, &err), &err);
}

/* In a block of exactly its size, so that the sanitizer sees one byte too many. */
static int read_copy(const char *bytes, size_t n, struct opc_zip_entry *entry, int *entries,
                     char **copy, struct opc_err *err)
{
    *copy = malloc(n ? n : 1);
    assert_non_null(*copy);
    memcpy(*copy, bytes, n);
    return opc_zip_read(*copy, n, entry, entries, err);
}

static void arrays_that_were_written_are_read(void **state)
{
    struct opc_zip zip;
    struct opc_zip_entry entry[OPC_ZIP_MAX];
    struct opc_npy array;
    struct opc_err err;
    int entries;
    (void)state;
    make(&zip);
    assert_ok(opc_zip_read(zip.bytes.at, zip.bytes.used, entry, &entries, &err), &err);
    assert_int_equal(entries, 5);
    assert_string_equal(entry[0].name, "floats.npy");
    assert_ok(opc_npy_parse(&entry[0], &array, &err), &err);
    assert_int_equal(array.dims, 2);
    assert_int_equal(array.shape[0], 2);
    assert_int_equal(array.shape[1], 3);
    for (size_t i = 0; i < 6; i++)
        assert_true(opc_npy_at(&array, i) == (double)FLOATS[i]);
    assert_ok(opc_npy_parse(&entry[1], &array, &err), &err);
    assert_true(opc_npy_at(&array, 1) == DOUBLES[1]);
    assert_ok(opc_npy_parse(&entry[2], &array, &err), &err);
    assert_true(opc_npy_at(&array, 0) == 1 && opc_npy_at(&array, 1) == 0);
    assert_ok(opc_npy_parse(&entry[3], &array, &err), &err);
    assert_int_equal(opc_npy_count(&array), 0);
    /* texts are for others to read */
    assert_fails(opc_npy_parse(&entry[4], &array, &err), OPC_EUSER, &err, "'|S4'");
    opc_zip_free(&zip);
}

static void the_data_of_an_array_begin_at_a_multiple_of_64(void **state)
{
    struct opc_zip zip;
    struct opc_zip_entry entry[OPC_ZIP_MAX];
    struct opc_npy array;
    struct opc_err err;
    int entries;
    (void)state;
    make(&zip);
    assert_ok(opc_zip_read(zip.bytes.at, zip.bytes.used, entry, &entries, &err), &err);
    for (int i = 0; i < 3; i++) {
        assert_ok(opc_npy_parse(&entry[i], &array, &err), &err);
        assert_int_equal(((const char *)array.data - entry[i].data) % 64, 0);
    }
    opc_zip_free(&zip);
}

/* Any prefix, and any byte changed: an error or an archive, never memory outside of it. */
static void a_damaged_archive_is_refused(void **state)
{
    struct opc_zip zip;
    struct opc_zip_entry entry[OPC_ZIP_MAX];
    struct opc_npy array;
    struct opc_err err;
    char *copy;
    int entries;
    (void)state;
    make(&zip);
    for (size_t n = 0; n < zip.bytes.used; n++) {
        assert_int_not_equal(read_copy(zip.bytes.at, n, entry, &entries, &copy, &err), OPC_OK);
        free(copy);
    }
    for (size_t at = 0; at < zip.bytes.used; at++) {
        zip.bytes.at[at] = (char)(zip.bytes.at[at] ^ 0x55);
        if (!read_copy(zip.bytes.at, zip.bytes.used, entry, &entries, &copy, &err))
            for (int i = 0; i < entries; i++)
                if (!opc_npy_parse(&entry[i], &array, &err) && opc_npy_count(&array) > 0)
                    (void)opc_npy_at(&array, opc_npy_count(&array) - 1);
        free(copy);
        zip.bytes.at[at] = (char)(zip.bytes.at[at] ^ 0x55);
    }
    opc_zip_free(&zip);
}

/* Entry 0 with its data changed so that only the checksum can tell. */
static void a_wrong_checksum_names_its_entry(void **state)
{
    struct opc_zip zip;
    struct opc_zip_entry entry[OPC_ZIP_MAX];
    struct opc_err err;
    int entries;
    (void)state;
    make(&zip);
    assert_ok(opc_zip_read(zip.bytes.at, zip.bytes.used, entry, &entries, &err), &err);
    zip.bytes.at[entry[1].data - zip.bytes.at + (ptrdiff_t)entry[1].bytes - 1] ^= 1;
    assert_fails(opc_zip_read(zip.bytes.at, zip.bytes.used, entry, &entries, &err), OPC_EDAMAGED,
                 &err, "doubles.npy");
    opc_zip_free(&zip);
}

static void headers_that_are_not_read_here_say_why(void **state)
{
    static const struct {
        const char *words, *key;
    } CASES[] = {
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }", "<f2"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "ascontiguousarray"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1), }", "4 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000, 2000000000), }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "4 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, }", "header"},
    };
    struct opc_npy array;
    struct opc_err err;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct opc_zip_entry entry = {.name = "x.npy"};
        char bytes[256] = "\x93NUMPY\1";
        const size_t n = strlen(CASES[i].words);
        bytes[8] = (char)n;
        memcpy(bytes + 10, CASES[i].words, n);
        entry.data = bytes;
        entry.bytes = 10 + n + 4;
        assert_int_not_equal(opc_npy_parse(&entry, &array, &err), OPC_OK);
        assert_mentions(&err, "x.npy");
        assert_mentions(&err, CASES[i].key);
    }
}

/* The examples of the encoding's description: field 1 = 150; field 2 = "testing"; a message. */
static void messages_have_the_bytes_of_protocol_buffers(void **state)
{
    struct opc_text out = {0}, inner = {0};
    struct opc_err err;
    (void)state;
    opc_proto_whole(&inner, 1, 150);
    assert_int_equal(inner.used, 3);
    assert_same_bits(inner.at, "\x08\x96\x01", 3);
    opc_proto_text(&out, 2, "testing");
    opc_proto_message(&out, 3, &inner);
    opc_proto_float(&out, 16, 1.0f);
    assert_ok(opc_text_check(&out, &err), &err);
    assert_int_equal(out.used, 9 + 5 + 6);
    assert_same_bits(out.at, "\x12\x07testing\x1a\x03\x08\x96\x01\x85\x01\x00\x00\x80\x3f", 20);
    opc_text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_that_were_written_are_read),
        cmocka_unit_test(the_data_of_an_array_begin_at_a_multiple_of_64),
        cmocka_unit_test(a_damaged_archive_is_refused),
        cmocka_unit_test(a_wrong_checksum_names_its_entry),
        cmocka_unit_test(headers_that_are_not_read_here_say_why),
        cmocka_unit_test(messages_have_the_bytes_of_protocol_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
