/* SPDX-License-Identifier: MIT */
/* opc/err.h - what went wrong, in words a person can act on.
 *
 * Whatever can fail returns an `enum opc_code` as int and takes a `struct opc_err *` last. The
 * message is written where the fault is known (what was read, why it will not do, what would),
 * each level up adds only where it was, and the program prints it once. The library itself never
 * prints and never exits, unless it finds itself broken: then it says so and aborts. */
#ifndef OPC_ERR_H
#define OPC_ERR_H

#include <stdarg.h>

#if defined(__GNUC__)
#define OPC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define OPC_API __attribute__((visibility("default")))
#else
#define OPC_PRINTF(fmt, args)
#define OPC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum opc_code {
    OPC_OK = 0,
    OPC_EUSER,     /* the request cannot be meant: option, setting, file content */
    OPC_ENOMEM,    /* the machine has not enough memory for it */
    OPC_EIO,       /* the operating system refused: file, directory, process, thread */
    OPC_EABSENT,   /* this build lacks the library that would do it */
    OPC_EDAMAGED,  /* a file of ours does not pass its checks */
    OPC_EDIVERGED, /* NaN or infinity in a network, a model or a simulator */
    OPC_EENV,      /* an environment failed */
    OPC_ESTOPPED,  /* stopped by request; can be resumed */
    OPC_EBUG,      /* our fault; asks for a report */
    OPC_EREFUSED,  /* every imagined rollout was refused: there is nothing to learn from */
};

struct opc_err {
    enum opc_code code;
    char text[400]; /* one line for a person; no trailing newline */
    /* The settings at fault, as section.name with a space between them; "": none in particular. It
     * is what says where in a file the fault is, never the words of `text`. */
    char settings[120];
};

/* Fills err (NULL is fine) and returns code, so that `return opc_fail(...)` reads well. */
OPC_API int opc_fail(struct opc_err *err, enum opc_code code, const char *fmt, ...)
    OPC_PRINTF(3, 4);
/* The same with OPC_EUSER, for settings that do not fit each other. */
OPC_API int opc_fail_settings(struct opc_err *err, const char *settings, const char *fmt, ...)
    OPC_PRINTF(3, 4);
/* The same for a refused system call: "fmt: reason; what to do about it", where number is the errno
 * it left. OPC_EUSER where a path leads nowhere, to a file instead of a directory or the other way
 * round; otherwise OPC_EIO. */
OPC_API int opc_fail_errno(struct opc_err *err, int number, const char *fmt, ...) OPC_PRINTF(3, 4);
/* Puts "where: " in front of the message on the way up, and returns err's code (OPC_EBUG when err
 * is NULL: the code is known only to who asked for it). */
OPC_API int opc_within(struct opc_err *err, const char *fmt, ...) OPC_PRINTF(2, 3);
/* Leaves the calling function with the code of a call that failed; for functions with nothing to
 * free. */
#define OPC_TRY(call)                                                                              \
    do {                                                                                           \
        const int opc_try_code = (call);                                                           \
        if (opc_try_code)                                                                          \
            return opc_try_code;                                                                   \
    } while (0)
/* The program's exit status: 0 done, 1 failure, 2 usage, 3 damaged file, 4 diverged or every
 * rollout refused, 5 environment failed, 75 stopped by request. */
OPC_API int opc_exit_status(int code);

#ifdef __clang_analyzer__ /* which cannot see from here that a failure is never OPC_OK */
#define opc_fail(err, code, ...) ((void)opc_fail(err, code, __VA_ARGS__), (int)(code))
#define opc_fail_settings(...) ((void)opc_fail_settings(__VA_ARGS__), (int)OPC_EUSER)
#define opc_fail_errno(...) ((void)opc_fail_errno(__VA_ARGS__), (int)OPC_EIO)
#define opc_within(...) ((void)opc_within(__VA_ARGS__), (int)OPC_EBUG)
#endif

#ifdef __cplusplus
}
#endif
#endif
