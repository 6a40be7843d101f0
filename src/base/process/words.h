/* SPDX-License-Identifier: MIT */
/* base/process/words.h - a command line in one text, split into words as sh quotes them. */
#ifndef OPC_BASE_WORDS_H
#define OPC_BASE_WORDS_H

#include "opc/err.h"

#include <stddef.h>

/* The words of the first n bytes of `text`, as a list that ends with NULL, for exec. Blanks
 * separate words; '...' keeps everything, "..." keeps everything but a backslash before " \ $ and
 * `, and a backslash elsewhere keeps the next character. Nothing is expanded and nothing is an
 * operator: wildcards, ~, $, | and > are characters like any other. *out is one block for opc_free.
 * OPC_EUSER: a quote is not closed, or there is no word. */
int opc_split_words(const char *text, size_t n, char ***out, struct opc_err *err);

#endif
