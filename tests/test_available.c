/* SPDX-License-Identifier: MIT */
#include "base/available.h"

#include "base/file.h"
#include "test.h"

#include <math.h>

/* Writes one file of a kernel that is made up, below the test's directory. */
static void put(void **state, const char *path, const char *text)
{
    char file[OPC_PATH], dir[OPC_PATH];
    struct opc_err err;
    snprintf(file, sizeof file, "%s%s", (const char *)*state, path);
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(file, '/') - file), file);
    assert_ok(opc_make_directories(dir, &err), &err);
    assert_ok(opc_file_write(file, text, strlen(text), &err), &err);
}

static void assert_left(void **state, double bytes)
{
    const double left = opc_available_bytes(*state);
    if (left != bytes)
        fail_msg("%.0f bytes instead of %.0f", left, bytes);
}

static void without_a_kernel_nothing_is_known(void **state)
{
    assert_true(opc_available_bytes(*state) < 0);
}

static void memory_of_the_machine_counts_without_limits(void **state)
{
    put(state, "/proc/meminfo", "MemTotal: 900 kB\nMemAvailable:    500 kB\n");
    assert_left(state, 500 * 1024);
    put(state, "/proc/self/cgroup", "0::/job\n");
    put(state, "/sys/fs/cgroup/job/memory.max", "max\n");
    put(state, "/sys/fs/cgroup/job/memory.current", "1000\n");
    assert_left(state, 500 * 1024);
}

/* The job's own group has a limit, which the root of the tree does not show. */
static void limits_of_the_job_and_of_those_above_it_count(void **state)
{
    put(state, "/proc/meminfo", "MemAvailable: 500 kB\n");
    put(state, "/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    put(state, "/sys/fs/cgroup/slurm/job_7/memory.max", "100000\n");
    put(state, "/sys/fs/cgroup/slurm/job_7/memory.current", "60000\n");
    assert_left(state, 40000);
    /* files in its cache can be dropped */
    put(state, "/sys/fs/cgroup/slurm/job_7/memory.stat", "anon 1\ninactive_file 15000\n");
    assert_left(state, 55000);
    /* the tightest of all counts */
    put(state, "/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "30000\n");
    put(state, "/sys/fs/cgroup/slurm/job_7/step_0/memory.current", "10000\n");
    assert_left(state, 20000);
    put(state, "/sys/fs/cgroup/memory.max", "5000\n");
    put(state, "/sys/fs/cgroup/memory.current", "9000\n");
    assert_left(state, 0); /* beyond it already */
}

static void the_first_version_of_control_groups_is_read_too(void **state)
{
    put(state, "/proc/meminfo", "MemAvailable: 500 kB\n");
    put(state, "/proc/self/cgroup", "5:cpu:/x\n4:memory:/job\n0::/\n");
    put(state, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "70000\n");
    put(state, "/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "30000\n");
    put(state, "/sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 5000\n");
    assert_left(state, 45000);
    /* A container shows the path outside, and its own group at the root. */
    put(state, "/proc/self/cgroup", "4:memory:/docker/abc\n");
    put(state, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9000\n");
    put(state, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
    assert_left(state, 7000);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(without_a_kernel_nothing_is_known),
        IN_DIR(memory_of_the_machine_counts_without_limits),
        IN_DIR(limits_of_the_job_and_of_those_above_it_count),
        IN_DIR(the_first_version_of_control_groups_is_read_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
