/* SPDX-License-Identifier: MIT */
/* drawn.h - for tests that draw: fontconfig, which cairo asks for fonts, keeps what it has read to
 * the end behind pointers that leak checkers do not recognise. (tests/valgrind.supp says it to
 * valgrind.) */
#ifndef OPC_TEST_DRAWN_H
#define OPC_TEST_DRAWN_H

const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier) */
const char *__lsan_default_suppressions(void)  /* NOLINT(bugprone-reserved-identifier) */
{
    return "leak:libfontconfig\n";
}

#endif
