/* SPDX-License-Identifier: MIT */
/* Memory that is left, as the kernel tells. Called by run/assemble.c before a run allocates
 * anything.
 *
 * A process belongs to a control group, /proc/self/cgroup says which, and is confined by the limits
 * of that group and of all groups above it. There are two layouts: version 2 has one tree
 * (`0::/path`), version 1 a tree for each resource (`4:memory:/path`). In a container the path may
 * be the one outside, which does not exist inside; then only the root of the tree is looked at. */
#include "base/available.h"

#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The files of one layout. */
struct layout {
    const char *line;       /* before the path in /proc/self/cgroup, after the number */
    const char *tree;       /* where the groups are mounted */
    const char *max, *used; /* limit and use, in bytes */
    const char *cache;      /* key in memory.stat: files the kernel drops when memory is needed */
};
static const struct layout LAYOUTS[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
};

/* The number that follows `key` in a file of the kernel; negative: there is none. */
static double read_number(const char *path, const char *key)
{
    char line[256];
    double v = -1;
    FILE *f = fopen(path, "r");
    if (!f)
        return v;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%lf", &v) == 1)
            break;
    fclose(f);
    return v;
}

/* The number in file `name` of a group. */
static double read_group(const char *dir, const char *name, const char *key)
{
    char path[OPC_PATH];
    return opc_path_join(path, dir, name, NULL) ? -1 : read_number(path, key);
}

/* Bytes left in one group; infinite without a limit. */
static double left_in(const char *dir, const struct layout *layout)
{
    const double max = read_group(dir, layout->max, "");
    double used = read_group(dir, layout->used, "");
    const double files = read_group(dir, "memory.stat", layout->cache);
    if (max <= 0 || used < 0) /* "max" is no number: no limit */
        return HUGE_VAL;
    used -= files > 0 ? fmin(files, used) : 0;
    return fmax(max - used, 0);
}

/* The path of this process's group in a layout; "" if it has none. */
static void find_group(const char *root, const struct layout *layout, char out[OPC_PATH])
{
    char file[OPC_PATH], line[OPC_PATH];
    out[0] = '\0';
    snprintf(file, sizeof file, "%.200s/proc/self/cgroup", root);
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        const size_t n = strlen(layout->line);
        if (!colon || strncmp(colon, layout->line, n) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, OPC_PATH, "%s", colon + n);
        break;
    }
    if (f)
        fclose(f);
}

double opc_available_bytes(const char *root)
{
    char path[OPC_PATH], group[OPC_PATH] = "", dir[OPC_PATH + 300];
    snprintf(path, sizeof path, "%.200s/proc/meminfo", root);
    double left = read_number(path, "MemAvailable:") * 1024;
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof *LAYOUTS; i++) {
        find_group(root, &LAYOUTS[i], group);
        /* The group, the one above it, and so on to the root of the tree. */
        for (;;) {
            char *slash = strrchr(group, '/');
            const bool is_root = !slash || !group[1];
            snprintf(dir, sizeof dir, "%.200s%s%s", root, LAYOUTS[i].tree, is_root ? "" : group);
            const double here = left_in(dir, &LAYOUTS[i]);
            if (isfinite(here) && (left < 0 || here < left))
                left = here;
            if (is_root)
                break;
            *slash = '\0';
            if (!*group)
                snprintf(group, sizeof group, "/");
        }
    }
    return left;
}
