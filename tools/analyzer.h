/* SPDX-License-Identifier: MIT */
/* Put in front of every file by `./dev lint`, for clang's analyzer: it cannot see into err.c, and
 * would follow paths on which a failure returns OPC_OK. */
#include "opc/err.h"

static inline int opc_a_failure(int code)
{
    if (code == OPC_OK)
        __builtin_unreachable();
    return code;
}

#define opc_fail(...) opc_a_failure(opc_fail(__VA_ARGS__))
#define opc_fail_errno(...) opc_a_failure(opc_fail_errno(__VA_ARGS__))
#define opc_within(...) opc_a_failure(opc_within(__VA_ARGS__))
