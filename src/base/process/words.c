/* SPDX-License-Identifier: MIT */
/* Splits a command line into words with sh's quoting and nothing else of sh: no shell is started,
 * so nothing in the text can run a second command. Called by env/process.c. */
#include "base/process/words.h"

#include "opc/mem.h"

#include <stdbool.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Copies one word from at .. end to `to`, without its quotes and with a NUL. Returns where the word
 * ends in the text, or NULL if a quote is not closed; *copied is the byte after the NUL. */
static const char *copy_word(const char *at, const char *end, char *to, char **copied)
{
    char quote = '\0'; /* the quote we are inside of */
    for (; at < end && (quote || !is_blank(*at)); at++) {
        if (*at == quote)
            quote = '\0';
        else if (!quote && (*at == '\'' || *at == '"'))
            quote = *at;
        /* Between double quotes a backslash is a character, except before these four. */
        else if (*at == '\\' && quote != '\'' && at + 1 < end &&
                 (!quote || strchr("\"\\$`", at[1])))
            *to++ = *++at;
        else
            *to++ = *at;
    }
    *to++ = '\0';
    *copied = to;
    return quote ? NULL : at;
}

int opc_split_words(const char *text, size_t n, char ***out, struct opc_err *err)
{
    /* One block: at most (n + 1) / 2 words and the final NULL, then their characters, each word
     * with a NUL. */
    const size_t max = n / 2 + 2, bytes = max * sizeof(char *) + n + max;
    char **words = opc_alloc(1, bytes);
    if (!words)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a command of %zu bytes", n);
    char *to = (char *)(words + max);
    const char *at = text, *end = text + n;
    size_t count = 0;
    for (;;) {
        while (at < end && is_blank(*at))
            at++;
        if (at == end)
            break;
        words[count++] = to;
        at = copy_word(at, end, to, &to);
        if (!at) {
            opc_free(words);
            return opc_fail(err, OPC_EUSER, "a quote is not closed in the command: %.*s", (int)n,
                            text);
        }
    }
    /* opc_alloc has set the entry after the last word to NULL. */
    if (count == 0 || !*words[0]) {
        opc_free(words);
        return opc_fail(err, OPC_EUSER, "there is no command; write the program and its arguments");
    }
    *out = words;
    return OPC_OK;
}
