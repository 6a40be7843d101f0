/* SPDX-License-Identifier: MIT */
#include "base/format/png.h"
#include "base/process/child.h"
#include "opc/mem.h"
#include "opc/rng.h"
#include "test.h"

/* Pictures of all sorts: noise, smooth, flat with dots, repeating rows. */
static void paint(int kind, int width, int height, unsigned char *rgb)
{
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 0, (uint32_t)kind);
    for (int y = 0, i = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++, i++) {
                const uint32_t dice = opc_rng_bits(&rng);
                const int value[] = {(int)(dice & 255), (x * 5 + y * 3 + c * 40) % 256,
                                     dice % 50 ? 7 : (int)(dice >> 24), (x * x + c) % 256};
                rgb[i] = (unsigned char)value[kind];
            }
}

/* ffmpeg, which shares no code with us, must read the same pixels. */
static void ffmpeg_reads_back_every_pixel(void **state)
{
    const char *dir = *state;
    const int sizes[][2] = {{1, 1}, {2, 3}, {17, 9}, {300, 200}, {11000, 3}};
    char path[600];
    struct opc_text version = {0};
    const int missing =
        opc_child_run((char *[]){"ffmpeg", "-version", NULL}, 1 << 16, &version, NULL);
    opc_text_free(&version);
    if (missing)
        skip(); /* tests/program/env.sh insists on it */
    snprintf(path, sizeof path, "%s/a.png", dir);
    for (int kind = 0; kind < 4; kind++)
        for (int k = 0; k < 5; k++) {
            const int width = sizes[k][0], height = sizes[k][1];
            const size_t bytes = 3 * (size_t)width * (size_t)height;
            unsigned char *rgb = opc_alloc(bytes, 1);
            struct opc_text back = {0};
            struct opc_err err = {0};
            paint(kind, width, height, rgb);
            assert_ok(opc_png_write(path, width, height, rgb, &err), &err);
            char *argv[] = {"ffmpeg", "-nostdin", "-loglevel", "error", "-i", path,
                            "-f",     "rawvideo", "-pix_fmt",  "rgb24", "-",  NULL};
            assert_ok(opc_child_run(argv, bytes + 1, &back, &err), &err);
            assert_int_equal(back.used, bytes);
            assert_same_bits(back.at, rgb, bytes);
            opc_text_free(&back);
            opc_free(rgb);
        }
}

static void plain_surfaces_become_small(void **state)
{
    (void)state;
    enum { SIDE = 200 };
    static unsigned char rgb[SIDE * SIDE * 3];
    struct opc_text flat = {0}, smooth = {0};
    struct opc_err err = {0};
    memset(rgb, 99, sizeof rgb);
    assert_ok(opc_png_encode(SIDE, SIDE, rgb, &flat, &err), &err);
    assert_true(flat.used < 2000);
    paint(1, SIDE, SIDE, rgb);
    assert_ok(opc_png_encode(SIDE, SIDE, rgb, &smooth, &err), &err);
    assert_true(smooth.used < sizeof rgb / 20);
    opc_text_free(&flat);
    opc_text_free(&smooth);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    struct opc_text out = {0};
    struct opc_err err = {0};
    assert_fails(opc_png_encode(0, 5, NULL, &out, &err), OPC_EUSER, &err, "0 x 5");
    assert_int_equal(opc_png_encode(5, 16385, NULL, &out, &err), OPC_EUSER);
}

static int encode(void *rgb, struct opc_err *err)
{
    struct opc_text out = {0};
    const int code = opc_png_encode(40, 20, rgb, &out, err);
    opc_text_free(&out);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    static unsigned char rgb[40 * 20 * 3];
    paint(0, 40, 20, rgb);
    assert_survives_lack_of_memory(encode, rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ffmpeg_reads_back_every_pixel, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(plain_surfaces_become_small),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("png", tests, NULL, NULL);
}
