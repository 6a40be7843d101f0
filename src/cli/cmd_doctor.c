/* SPDX-License-Identifier: MIT */
/* opc doctor - what this program is made of and what it found here, to paste into a report.
 *
 * Everything is read and printed; of what is missing the report says what cannot be done without
 * it, and the command that installs it on Debian. A fact that cannot be found is "unknown"; no
 * line may fail, because the command is run where something else already has. */
#include "base/pool.h"
#include "base/revision.h"
#include "cli/console/command.h"
#include "env/assets.h"
#include "env/bullet/shim.h"
#include "env/mujoco/mujoco.h"
#include "num/kernel.h"
#include "opc/version.h"
#include "plot/draw.h"
#include "run/config/yaml.h"
#include "run/files/json.h"
#include "web/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

/* One line: what it is, then what was found. */
static void print_fact(const char *name, const char *value)
{
    printf("  %-11s %s\n", name, value);
}

/* The value of `key` in a file of lines like "model name : EPYC" or PRETTY_NAME="Debian", without
 * separators and quotes; the first such line counts. `out` keeps its text if there is none. */
static void look_up(const char *path, const char *key, size_t size, char *out)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return;
    char text[512];
    while (fgets(text, sizeof text, f)) {
        if (strncmp(text, key, strlen(key)) == 0) {
            const char *from = text + strlen(key);
            /* Skip what separates key and value, and an opening quote. */
            from += strspn(from, " \t:=\"");
            snprintf(out, size, "%.*s", (int)strcspn(from, "\"\n"), from);
            break;
        }
    }
    fclose(f);
}

/* Kind of build, sanitizers, compiler and C library. */
static void print_build(void)
{
    /* Not every C library is glibc. */
    char text[256], libc[64] = "unknown libc";
#if defined(__GLIBC__)
    snprintf(libc, sizeof libc, "glibc %s", gnu_get_libc_version());
#endif
    snprintf(text, sizeof text, "%s%s%s, %s, %s", OPC_BUILD_TYPE, *OPC_SANITIZE ? " with " : "",
             OPC_SANITIZE, OPC_COMPILER, libc);
    print_fact("build", text);
}

static void print_machine(void)
{
    /* The operating system. */
    struct utsname system;
    char text[512], name[128] = "unknown";
    look_up("/etc/os-release", "PRETTY_NAME", sizeof name, name);
    /* Left out where the kernel does not say. */
    if (uname(&system) == 0) {
        snprintf(text, sizeof text, "%s, %s %s, %s", name, system.sysname, system.release,
                 system.machine);
        print_fact("system", text);
    }

    /* The processors, and how many of them this process may use. */
    snprintf(name, sizeof name, "unknown");
    look_up("/proc/cpuinfo", "model name", sizeof name, name);
    snprintf(text, sizeof text, "%s, %d of %ld usable", name, opc_processors(),
             sysconf(_SC_NPROCESSORS_ONLN));
    print_fact("processors", text);

    /* The instruction sets that the kernels choose among. */
    char features[128] = "";
#if defined(__x86_64__)
#define FEATURE(f) __builtin_cpu_supports(f) ? " " f : ""
    snprintf(features, sizeof features, "%s%s%s%s%s%s%s%s%s", FEATURE("sse2"), FEATURE("sse4.2"),
             FEATURE("avx"), FEATURE("avx2"), FEATURE("fma"), FEATURE("avx512f"),
             FEATURE("avx512dq"), FEATURE("avx512bw"), FEATURE("avx512vl"));
#elif defined(__aarch64__)
    snprintf(features, sizeof features, " neon fma");
#endif
    print_fact("features", *features ? features + 1 : "unknown");

    /* Memory, in all and available. */
    char free_kib[64] = "";
    look_up("/proc/meminfo", "MemAvailable", sizeof free_kib, free_kib);
    const double total = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double available = 0;
    const bool known = sscanf(free_kib, "%lf kB", &available) == 1;
    char a[OPC_PRINTED], b[OPC_PRINTED];
    snprintf(text, sizeof text, "%s, %s available", opc_print_bytes(total, a),
             known ? opc_print_bytes(available * 1024, b) : "unknown");
    print_fact("memory", text);
}

/* The kernels in use, and the others this processor could run. */
static void print_kernels(void)
{
    const struct opc_kernels *all[8], *used = opc_kernels();
    struct opc_text text = {0};
    const int n = opc_kernels_list(all);
    opc_text_addf(&text, "%s (%d floats, %s)", used->name, used->width,
                  used->fused ? "fused multiply-add" : "no fused multiply-add");
    /* OPC_BACKEND chooses one of the others. */
    for (int i = 0, others = 0; i < n; i++)
        if (all[i] != used)
            opc_text_addf(&text, "%s%s", others++ ? ", " : "; also here: ", all[i]->name);
    print_fact("kernels", opc_text_get(&text));
    opc_text_free(&text);
}

/* What a thing is needed for, and where it comes from. */
struct part {
    const char *name, *found; /* found: its version or path; NULL: it is missing */
    const char *without;      /* what cannot be done without it */
    const char *package;      /* of Debian */
    const char *option;       /* of CMake, where it is part of the build; NULL: looked for here */
};

/* What was found, or what its lack means and the commands that end it. */
static void print_part(const struct part *part)
{
    if (part->found) {
        print_fact(part->name, part->found);
        return;
    }
    print_fact(part->name, part->option ? "not in this build" : "not found");
    printf("  %-11s   without it: %s\n", "", part->without);
    printf("  %-11s   to get it: apt-get install %s\n", "", part->package);
    if (part->option)
        printf("  %-11s   then: cmake -B build -D %s=ON && cmake --build build\n", "",
               part->option);
}

/* The path of a program that the shell would find; NULL: there is none. */
static const char *find_program(const char *name, size_t size, char *out)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        const size_t n = strcspn(at, ":");
        /* An empty entry is the working directory. */
        const int used = snprintf(out, size, "%.*s/%s", n ? (int)n : 1, n ? at : ".", name);
        if (used > 0 && (size_t)used < size && access(out, X_OK) == 0)
            return out;
        at += n + (at[n] == ':');
    }
    return NULL;
}

/* Everything that opc can do without, in part. */
static void print_parts(void)
{
    char ffmpeg[512];
    const struct part parts[] = {
        {"mujoco", opc_mujoco_version(),
         "the tasks mujoco:... cannot be opened, and 'opc env render' cannot draw", "libmujoco-dev",
         "OPC_WITH_MUJOCO"},
        {"bullet", opc_bullet_version(), "the tasks bullet:... cannot be opened", "libbullet-dev",
         "OPC_WITH_BULLET"},
        {"cairo", opc_draw_version(),
         "'opc plot' cannot draw; 'opc repro' makes tables and claims without pictures",
         "libcairo2-dev fonts-dejavu-core", "OPC_WITH_CAIRO"},
        {"microhttpd", opc_http_version(), "'opc serve' cannot show runs in a browser",
         "libmicrohttpd-dev", "OPC_WITH_MICROHTTPD"},
        {"ffmpeg", find_program("ffmpeg", sizeof ffmpeg, ffmpeg),
         "'opc env render' writes numbered PNG files instead of a film", "ffmpeg", NULL},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        print_part(&parts[i]);
}

static int doctor_run(int argc, char **argv, struct opc_err *err)
{
    int first;
    const int code = opc_options_read(NULL, argc, argv, NULL, &first, err);
    if (code)
        return code;
    /* A report has no choices. */
    if (first < argc)
        return opc_fail(err, OPC_EUSER, "takes no arguments, not '%s'", argv[first]);

    /* Models compiled in, and whether a variable overrides them. */
    int models = 0;
    char text[64];
    const char *elsewhere = getenv("OPC_MODELS");
    while (opc_assets[models].name)
        models++;
    snprintf(text, sizeof text, "%d files, compiled in%s", models,
             elsewhere && *elsewhere ? ", but OPC_MODELS is set" : "");

    /* The program first, then the machine, then libraries, which is the order of a report. */
    printf("opc %s\n", OPC_VERSION);
    print_fact("revision", *opc_revision ? opc_revision : "not built from a clone");
    print_build();
    print_machine();
    print_kernels();
    print_parts();
    print_fact("libyaml", opc_yaml_version());
    print_fact("jansson", opc_json_version());
    print_fact("models", text);
    return OPC_OK;
}

const struct opc_command opc_cmd_doctor = {
    .name = "doctor",
    .usage = "",
    .summary = "show what this program is made of and what it found on this machine",
    .detail = "Prints a block to paste into a report: version, compiler, operating system, "
              "processor and its features, the compute kernels in use (OPC_BACKEND=NAME in the "
              "environment chooses others), memory, and the versions of the libraries it uses. Of "
              "what is missing it says what cannot be done without it, and how to install it.",
    .run = doctor_run,
};
