/* SPDX-License-Identifier: MIT */
/* The launcher `slurm`: hands runs over to Slurm as one job array (docs/cluster.md). It executes
 * sbatch, squeue, scancel and scontrol; nothing is linked.
 *
 * Invariant: what is queued is known from squeue alone. A job is recognised by its name,
 * opc-TAG-NUMBER, where TAG is the random word in OUT/.slurm/tag, and NUMBER the batch, whose runs
 * are in OUT/.slurm/NUMBER.runs. The script that was submitted stays beside it, as NUMBER.sh. */
#include "base/file.h"
#include "base/process/child.h"
#include "opc/mem.h"
#include "sweep/launch.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OUTPUT = 1 << 26, TAG = 32, NOT_FOUND = 127 };
/* How long before the end of its time a job is warned, to save its runs: Slurm's own clock for that
 * is a minute coarse. Of a short time it is a quarter. */
enum { WARNING_S = 120 };

/* ---- Slurm's programs ------------------------------------------------------------------------ */

/* Runs one of them; `said` is what it prints, errors included. A shell joins the two streams. */
static int call_slurm(char *const argv[], struct opc_text *said, struct opc_err *err)
{
    enum { MAX_WORDS = 64 };
    char *words[MAX_WORDS + 6] = {"sh", "-c", "exec \"$@\" 2>&1", "sh"};
    int n = 0;
    for (; n < MAX_WORDS && argv[n]; n++)
        words[n + 4] = argv[n];
    struct opc_child child = {0};
    OPC_TRY(opc_child_start(words, &(struct opc_child_plan){.pipe_out = true}, &child, err));
    int code = opc_child_read_all(&child, MAX_OUTPUT, said, err);
    if (code)
        opc_child_kill(&child, 9);
    opc_child_wait(&child);
    const int status = child.status;
    opc_child_end(&child, 0); /* closes the pipe */
    if (code || status == 0)
        return code;
    if (status == NOT_FOUND)
        return opc_fail(err, OPC_EIO,
                        "there is no %s on this machine; use one where Slurm's commands are, or "
                        "--launcher local",
                        argv[0]);
    /* Its first line has the reason. */
    const char *text = opc_text_get(said);
    return opc_fail(err, OPC_EIO, "%s refused (exit status %d): %.*s", argv[0], status,
                    (int)strcspn(text, "\n"), text);
}

/* The word that tells the jobs of this OUT from others; "": nothing was ever submitted. */
static int read_tag(const char *folder, char tag[TAG], struct opc_err *err)
{
    char path[OPC_PATH], *text;
    *tag = '\0';
    OPC_TRY(opc_path_join(path, folder, "tag", err));
    if (opc_file_exists(path)) {
        OPC_TRY(opc_file_read(path, TAG - 1, &text, NULL, err));
        snprintf(tag, TAG, "%.*s", (int)strcspn(text, "\n"), text);
        opc_free(text);
    }
    return OPC_OK;
}

static int make_tag(const char *folder, char tag[TAG], struct opc_err *err)
{
    char path[OPC_PATH];
    OPC_TRY(read_tag(folder, tag, err));
    if (*tag)
        return OPC_OK;
    OPC_TRY(opc_path_join(path, folder, "tag", err));
    uint32_t random = (uint32_t)getpid();
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, &random, sizeof random) < 0)
        random = (uint32_t)getpid();
    if (fd >= 0)
        close(fd);
    snprintf(tag, TAG, "%08x", random);
    return opc_file_write(path, tag, strlen(tag), err);
}

/* ---- sbatch ---------------------------------------------------------------------------------- */

/* Seconds of a time as Slurm writes it: MIN, MIN:SEC, HOUR:MIN:SEC, DAY-HOUR[:MIN[:SEC]]; negative:
 * it is none. */
static double seconds_of(const char *time)
{
    double part[4] = {0};
    int n = 0, used = 0, days = 0;
    if (sscanf(time, "%d-%n", &days, &used) != 1 || used == 0) {
        days = 0;
        used = 0;
    }
    const bool dash = used > 0;
    for (const char *at = time + used; n < 3; n++) {
        int value, length = 0;
        if (!isdigit((unsigned char)*at) || sscanf(at, "%d%n", &value, &length) != 1)
            return -1;
        part[n] = value;
        at += length;
        if (!*at) {
            n++;
            break;
        }
        if (*at++ != ':')
            return -1;
    }
    if (dash)
        return days * 86400.0 + part[0] * 3600 + part[1] * 60 + part[2];
    return n == 1   ? part[0] * 60
           : n == 2 ? part[0] * 60 + part[1]
                    : part[0] * 3600 + part[1] * 60 + part[2];
}

/* Words that go into a line of the script must not end it. */
static int check_word(const char *option, const char *value, struct opc_err *err)
{
    for (const char *at = value; *at; at++)
        if (iscntrl((unsigned char)*at) || isspace((unsigned char)*at) || strchr("\"'\\#", *at))
            return opc_fail(err, OPC_EUSER,
                            "%s = '%s' is not a word; more goes into --slurm-options", option,
                            value);
    return OPC_OK;
}

static int check_resources(const struct opc_resources *r, struct opc_err *err)
{
    OPC_TRY(check_word("--partition", r->partition ? r->partition : "", err));
    OPC_TRY(check_word("--memory", r->memory ? r->memory : "", err));
    if (r->time && *r->time && seconds_of(r->time) <= 0)
        return opc_fail(err, OPC_EUSER,
                        "--time = '%s' is not a time; write minutes, hours:minutes:seconds or "
                        "days-hours, as 2-12",
                        r->time);
    if (r->options && strpbrk(r->options, "\n\r"))
        return opc_fail(err, OPC_EUSER, "--slurm-options must be one line");
    return OPC_OK;
}

/* A path as sbatch reads it in a script: quoted, and %% for %, which it would replace. */
static void add_pattern(struct opc_text *text, const char *path)
{
    for (const char *at = path; *at; at++) {
        if (strchr("\"\\", *at))
            opc_text_add(text, "\\");
        opc_text_addf(text, "%.1s%s", at, *at == '%' ? "%" : "");
    }
}

/* A path as a shell reads it, in single quotes. */
static void add_quoted(struct opc_text *text, const char *path)
{
    opc_text_add(text, "'");
    for (const char *at = path; *at; at++)
        if (*at == '\'')
            opc_text_add(text, "'\\''");
        else
            opc_text_addf(text, "%.1s", at);
    opc_text_add(text, "'");
}

static void add_option(struct opc_text *text, const char *option, const char *value)
{
    if (value && *value)
        opc_text_addf(text, "#SBATCH --%s=%s\n", option, value);
}

/* The script. Its command replaces the shell, so that Slurm's signals reach opc itself. */
static void compose_script(const struct opc_batch *batch, const char *tag, struct opc_text *text)
{
    const struct opc_resources *r = batch->resources;
    const double time = r->time && *r->time ? seconds_of(r->time) : 1e9;
    const int warning = time / 4 < WARNING_S ? (int)(time / 4) : WARNING_S;
    opc_text_addf(
        text,
        "#!/bin/sh\n# Written by opc: task I does %s of %d.runs, and is started again where "
        "it was stopped.\n"
        "#SBATCH --job-name=opc-%s-%d\n#SBATCH --array=1-%d",
        r->pack > 1 ? "runs (I - 1) * pack + 1 to I * pack" : "run I", batch->number, tag,
        batch->number, batch->tasks);
    if (r->limit > 0)
        opc_text_addf(text, "%%%d", r->limit);
    opc_text_add(text, "\n#SBATCH --output=\"");
    add_pattern(text, batch->folder);
    opc_text_addf(text,
                  "/%d-%%a.log\" --open-mode=append\n#SBATCH --requeue --signal=B:USR1@%d\n"
                  "#SBATCH --ntasks=1 --cpus-per-task=%d\n",
                  batch->number, warning, r->threads);
    add_option(text, "partition", r->partition);
    add_option(text, "time", r->time);
    add_option(text, "mem", r->memory);
    if (r->options && *r->options)
        opc_text_addf(text, "#SBATCH %s\n", r->options);
    opc_text_add(text, "exec ");
    add_quoted(text, batch->program);
    opc_text_add(text, " sweep ");
    add_quoted(text, batch->list);
    opc_text_addf(text, " work --launcher slurm --index \"$SLURM_ARRAY_TASK_ID\" --threads %d\n",
                  r->threads);
}

/* The number of the job: the line of digits, maybe with ;CLUSTER. Warnings may come before it. */
static bool find_number(const char *said, struct opc_text *job)
{
    for (const char *line = said; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t digits = strspn(line, "0123456789");
        if (digits > 0 && strchr(";\n", line[digits])) {
            opc_text_add_bytes(job, line, digits);
            return true;
        }
    }
    return false;
}

static int slurm_hand_over(const struct opc_batch *batch, struct opc_text *job, struct opc_err *err)
{
    char tag[TAG], name[32], script[OPC_PATH];
    struct opc_text text = {0}, said = {0};
    OPC_TRY(check_resources(batch->resources, err));
    OPC_TRY(make_tag(batch->folder, tag, err));
    snprintf(name, sizeof name, "%d.sh", batch->number);
    OPC_TRY(opc_path_join(script, batch->folder, name, err));
    compose_script(batch, tag, &text);
    int code = opc_text_check(&text, err);
    if (!code)
        code = opc_file_write(script, opc_text_get(&text), text.used, err);
    char *const argv[] = {"sbatch", "--parsable", script, NULL};
    if (!code)
        code = call_slurm(argv, &said, err);
    if (!code && !find_number(opc_text_get(&said), job))
        code = opc_fail(err, OPC_EIO, "sbatch printed no number of a job, but: %.200s",
                        opc_text_get(&said));
    if (code)
        unlink(script);
    opc_text_free(&text);
    opc_text_free(&said);
    return code;
}

/* ---- squeue, scancel ------------------------------------------------------------------------- */

/* "JOB|TASK|STATE|NAME|REASON": a task of ours? The reason may be of any length; it is cut. */
static bool parse_line(const char *line, const char *prefix, struct opc_queued *out)
{
    char job[32], state[24], name[128], reason[64];
    int task;
    *reason = '\0';
    if (sscanf(line, "%31[^|]|%d|%23[^|]|%127[^|\n]|%63[^\n]", job, &task, state, name, reason) <
            4 ||
        strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    *out = (struct opc_queued){.task = task};
    if (!opc_parse_int(name + strlen(prefix), &out->number))
        return false;
    snprintf(out->job, sizeof out->job, "%s_%d", job, task);
    snprintf(out->state, sizeof out->state, "%s", state);
    snprintf(out->reason, sizeof out->reason, "%s", strcmp(reason, "None") == 0 ? "" : reason);
    return true;
}

static int slurm_list(const char *folder, struct opc_queue *queue, struct opc_err *err)
{
    char tag[TAG], user[32], prefix[TAG + 8];
    struct opc_text said = {0};
    *queue = (struct opc_queue){0};
    OPC_TRY(read_tag(folder, tag, err));
    if (!*tag)
        return OPC_OK;
    snprintf(user, sizeof user, "--user=%ld", (long)getuid());
    snprintf(prefix, sizeof prefix, "opc-%s-", tag);
    char *const argv[] = {"squeue", "--noheader", "--array", user, "--format=%F|%K|%T|%j|%r", NULL};
    int code = call_slurm(argv, &said, err);
    /* as many entries as there are lines, at most */
    const char *text = opc_text_get(&said);
    size_t lines = 1;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    if (!code && !(queue->at = opc_alloc(lines, sizeof *queue->at)))
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the queue");
    for (const char *line = text; !code && *line;
         line += strcspn(line, "\n"), line += *line == '\n')
        queue->n += parse_line(line, prefix, &queue->at[queue->n]);
    opc_text_free(&said);
    return code;
}

static int slurm_cancel_all(const char *folder, int *jobs, struct opc_err *err)
{
    struct opc_queue queue;
    struct opc_text said = {0};
    *jobs = 0;
    OPC_TRY(slurm_list(folder, &queue, err));
    /* Batch by batch: all tasks of a job at once. */
    int code = OPC_OK;
    for (int i = 0; i < queue.n && !code; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen = seen || queue.at[k].number == queue.at[i].number;
        if (seen)
            continue;
        char job[48];
        snprintf(job, sizeof job, "%.*s", (int)strcspn(queue.at[i].job, "_"), queue.at[i].job);
        char *const argv[] = {"scancel", job, NULL};
        code = call_slurm(argv, &said, err);
        *jobs += !code;
    }
    opc_text_free(&said);
    opc_free(queue.at);
    return code;
}

/* ---- within a job ---------------------------------------------------------------------------- */

/* A job that Slurm itself ends (cancelled, preempted, out of time) is completing, and Slurm knows
 * what is to become of it. One that was warned, or whose process got a signal, is still running. */
static int slurm_requeue(struct opc_err *err)
{
    const char *job = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID");
    char id[64];
    struct opc_text said = {0};
    /* Not SLURM_JOB_ID: that of the last task is the array's own, and stands for all of its tasks.
     */
    if (!job || !task)
        return opc_fail(
            err, OPC_EUSER,
            "SLURM_ARRAY_JOB_ID is not set: this is not a task of a job array of Slurm");
    snprintf(id, sizeof id, "%.30s_%.30s", job, task);
    char *const ask[] = {"squeue", "--noheader", "--format=%T", "--jobs", id, NULL};
    char *const again[] = {"scontrol", "requeue", id, NULL};
    int code = call_slurm(ask, &said, err);
    const bool runs = strncmp(opc_text_get(&said), "RUNNING", 7) == 0;
    opc_text_clear(&said);
    if (!code && runs)
        code = call_slurm(again, &said, err);
    opc_text_free(&said);
    return code;
}

const struct opc_launcher_type opc_launcher_slurm = {
    .name = "slurm",
    .help = "a job array of the cluster that sbatch submits to",
    .poll_s = 1,
    .hand_over = slurm_hand_over,
    .list = slurm_list,
    .cancel_all = slurm_cancel_all,
    .requeue = slurm_requeue,
};
