/* SPDX-License-Identifier: MIT */
/* Error messages: opc_fail writes one, opc_within puts a place in front of it on the way up. Called
 * by every function that can fail; nothing here allocates or can fail itself.
 *
 * Invariants: err may be NULL, and err->text is one NUL-terminated line, cut where it is too long.
 */
#include "opc/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Long enough for two messages, so that one may quote another. */
enum { TEXT_SIZE = 2 * sizeof((struct opc_err *)0)->text + 4 };

/* Copies as much of the text as fits. */
static void put_text(struct opc_err *err, const char text[TEXT_SIZE])
{
    const size_t n = strnlen(text, sizeof err->text - 1);
    memcpy(err->text, text, n);
    err->text[n] = '\0';
}

static void fill_err(struct opc_err *err, enum opc_code code, const char *settings, const char *fmt,
                     va_list args)
{
    /* Formatted into a buffer of its own, because an argument may be err->text itself. */
    char text[TEXT_SIZE];
    vsnprintf(text, sizeof text, fmt, args);
    err->code = code;
    put_text(err, text);
    snprintf(err->settings, sizeof err->settings, "%s", settings);
}

int(opc_fail)(struct opc_err *err, enum opc_code code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        fill_err(err, code, "", fmt, args);
        va_end(args);
    }
    return (int)code;
}

int(opc_fail_settings)(struct opc_err *err, const char *settings, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        fill_err(err, OPC_EUSER, settings, fmt, args);
        va_end(args);
    }
    return OPC_EUSER;
}

/* What a person can do about an errno; "" where the reason itself says it. */
static const char *advice_for(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT: return "; free some space or choose another place";
    case EACCES:
    case EPERM: return "; check the permissions or choose another place";
    case EROFS: return "; choose another place";
    case ENOENT: return "; check the path";
    case ENOTDIR: return "; part of the path is a file";
    case EISDIR: return "; name a file in it";
    case ENAMETOOLONG: return "; choose a shorter name";
    case EFBIG: return "; raise the limit on file sizes (ulimit -f)";
    case EMFILE:
    case ENFILE: return "; raise the limit on open files (ulimit -n)";
    case EAGAIN: return "; raise the limit on processes (ulimit -u)";
    case EIO: return "; the device or network may be failing";
    default: return "";
    }
}

/* A name that leads nowhere is the user's to change; all else is a failure of the system. */
static enum opc_code code_for(int number)
{
    return number == ENOENT || number == ENOTDIR || number == EISDIR || number == ENAMETOOLONG ||
                   number == ELOOP
               ? OPC_EUSER
               : OPC_EIO;
}

int(opc_fail_errno)(struct opc_err *err, int number, const char *fmt, ...)
{
    if (err) {
        /* The message is "WHAT: REASON; ADVICE". */
        /* A long path is cut rather than the reason. */
        char what[sizeof err->text - 120], why[64], text[TEXT_SIZE];
        va_list args;
        va_start(args, fmt);
        vsnprintf(what, sizeof what, fmt, args);
        va_end(args);
        if (strerror_r(number, why, sizeof why))
            snprintf(why, sizeof why, "error %d", number);
        snprintf(text, sizeof text, "%s: %s%s", what, why, advice_for(number));
        err->code = code_for(number);
        err->settings[0] = '\0';
        put_text(err, text);
    }
    return code_for(number);
}

int(opc_within)(struct opc_err *err, const char *fmt, ...)
{
    if (!err)
        return OPC_EBUG;
    /* Through a buffer as well: the new message ends with the old one. */
    char where[sizeof err->text], text[TEXT_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(where, sizeof where, fmt, args);
    va_end(args);
    snprintf(text, sizeof text, "%s: %s", where, err->text);
    put_text(err, text);
    return (int)err->code;
}

/* The statuses are listed in help.c and docs; scripts rely on them. */
int opc_exit_status(int code)
{
    switch (code) {
    case OPC_OK: return 0;
    case OPC_EUSER: return 2;
    case OPC_EDAMAGED: return 3;
    case OPC_EDIVERGED:
    case OPC_EREFUSED: return 4;
    case OPC_EENV: return 5;
    case OPC_ESTOPPED: return 75;
    default: return 1;
    }
}
