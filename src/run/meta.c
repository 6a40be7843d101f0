/* SPDX-License-Identifier: MIT */
/* meta.json says which program, machine and simulator began a run. session.c writes it once;
 * restore.c compares it with what resumes the run. It never changes after that, so it describes the
 * beginning of the run, also where a later version went on with it. */
#include "base/revision.h"
#include "env/types.h"
#include "num/kernel.h"
#include "opc/version.h"
#include "run/files/json.h"
#include "run/files/rundir.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* "AMD EPYC 7763", as the kernel calls it. */
static void processor_name(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "unknown");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    fclose(f);
}

const char *opc_run_termination(const struct opc_run *run)
{
    const struct opc_env *env = run->play->env;
    if (!env->type->terminal)
        return run->termination ? "learned" : "never";
    return opc_env_is_process(env->spec) ? "asked" : "computed";
}

static int write_meta(const struct opc_run *run, const char *path, struct opc_err *err)
{
    char processor[128], text[64];
    const struct opc_env *env = run->play->env;
    struct utsname system;
    const time_t now = time(NULL);
    struct tm utc;
    processor_name(processor, sizeof processor);
    struct opc_json *json = opc_json_begin();
    /* the program */
    opc_json_text(json, "opc", OPC_VERSION);
    opc_json_text(json, "revision", *opc_revision ? opc_revision : NULL);
    opc_json_text(json, "compiler", OPC_COMPILER);
    opc_json_text(json, "build", OPC_BUILD_TYPE);
    /* the machine: results depend on the kernels in the last bits */
    if (uname(&system) == 0) {
        snprintf(text, sizeof text, "%.20s %.40s", system.sysname, system.release);
        opc_json_text(json, "system", text);
        opc_json_text(json, "machine", system.machine);
    }
    opc_json_text(json, "processor", processor);
    opc_json_text(json, "kernels", opc_kernels()->name);
    /* the task, its simulator and the simulator's model file */
    opc_json_text(json, "env", run->set->env.name);
    opc_json_text(json, "engine", env->engine);
    opc_json_text(json, "model", env->model);
    snprintf(text, sizeof text, "%08x", (unsigned)env->model_hash);
    opc_json_text(json, "model_crc32c", env->model ? text : NULL);
    opc_json_text(json, "termination", opc_run_termination(run));
    opc_json_whole(json, "observations", run->obs);
    opc_json_whole(json, "actions", run->act);
    /* the settings, as their checksum */
    opc_json_whole(json, "seed", run->set->train.seed);
    snprintf(text, sizeof text, "%08x", (unsigned)run->hash);
    opc_json_text(json, "config_crc32c", text);
    opc_json_whole(json, "threads", opc_pool_threads(run->pool));
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    opc_json_text(json, "started", text);
    return opc_json_write(json, path, err);
}

int opc_run_open_directory(struct opc_run *run, struct opc_err *err)
{
    char path[OPC_PATH];
    OPC_TRY(opc_runlog_path(run->log, "checkpoints", path, err));
    OPC_TRY(opc_make_directories(path, err));
    OPC_TRY(opc_runlog_path(run->log, "meta.json", path, err));
    return opc_file_exists(path) ? OPC_OK : write_meta(run, path, err);
}

bool opc_run_has_its_settings(const struct opc_run *run)
{
    char hash[16];
    struct opc_rundir_meta began;
    if (opc_rundir_meta(opc_runlog_dir(run->log), &began, NULL))
        return false;
    snprintf(hash, sizeof hash, "%08x", (unsigned)run->hash);
    return strcmp(began.config_crc32c, hash) == 0;
}

int opc_run_compare_worlds(const struct opc_run *run, struct opc_err *err)
{
    const struct opc_env *env = run->play->env;
    char model[16];
    struct opc_rundir_meta began;
    const int code = opc_rundir_meta(opc_runlog_dir(run->log), &began, err);
    if (code)
        return code;
    snprintf(model, sizeof model, "%08x", (unsigned)env->model_hash);
    /* A warning is enough: the checkpoint itself does not depend on the simulator's version. */
    if (*began.engine && env->engine && strcmp(began.engine, env->engine) != 0)
        opc_runlog_message(run->log, OPC_LEVEL_WARN,
                           "this run was begun with %s and goes on with %s", began.engine,
                           env->engine);
    if (*began.model_crc32c && env->model && strcmp(began.model_crc32c, model) != 0)
        opc_runlog_message(
            run->log, OPC_LEVEL_WARN,
            "this run was begun with another model of %s than this one; set OPC_MODELS "
            "as it was then, or take the plugin of then",
            run->set->env.name);
    return OPC_OK;
}
