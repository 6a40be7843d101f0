/* SPDX-License-Identifier: MIT */
/* opc bench env - a step of each environment, in one table with the other works. `opc env bench`
 * shows more about one environment; both measure through opc_env_bench. */
#include "cli/bench/bench.h"
#include "cli/env/env_bench.h"
#include "opc/env.h"

#include <stdio.h>

int opc_bench_env(struct opc_bench *b, struct opc_err *err)
{
    const struct opc_env_type *type;
    for (int i = 0; (type = opc_env_type_at(i)); i++) {
        struct opc_env_speed speed;
        const int code = opc_env_bench(type->name, b->seconds, &speed, err);
        /* A build without an engine leaves out its tasks. */
        if (code == OPC_EABSENT)
            continue;
        if (code)
            return code;
        /* The same keys as the other works, so that one script reads all lines. */
        if (b->json)
            printf("{\"work\": \"env %s\", \"obs\": 0, \"act\": 0, \"hidden\": 0, \"batch\": 1, "
                   "\"threads\": 1, \"best_ms\": %.6g, \"median_ms\": %.6g, \"per_s\": %.6g, "
                   "\"gflops\": 0, \"roofline_fraction\": 0, \"of_bare_engine\": %.4g}\n",
                   type->name, speed.us * 1e-3, speed.us * 1e-3, 1e6 / speed.us, speed.ratio);
        else if (speed.bare_us > 0)
            printf("%-38s %21.4g %11.5g   %.3f of the bare engine\n", type->name, speed.us * 1e-3,
                   1e6 / speed.us, speed.ratio);
        else
            printf("%-38s %21.4g %11.5g\n", type->name, speed.us * 1e-3, 1e6 / speed.us);
        fflush(stdout);
    }
    return OPC_OK;
}
