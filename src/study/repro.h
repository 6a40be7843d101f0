/* SPDX-License-Identifier: MIT */
/* study/repro.h - experiments by name: from a file, through its runs, to an exhibit.
 *
 * With the directory OUT, the runs of fig3 are below OUT/runs/fig3 and its exhibit is OUT/fig3.*
 * (study/exhibit/exhibit.h). Running is schedule.h's part; here is everything before and after,
 * and opc_experiment_make, which does all of it. */
#ifndef OPC_STUDY_REPRO_H
#define OPC_STUDY_REPRO_H

#include "study/exhibit/analysis.h"
#include "sweep/schedule.h"

/* The directory of experiments: `given`, or if that is empty experiments/paper, here or
 * installed. */
int opc_experiments_dir(const char *given, char out[OPC_PATH], struct opc_err *err);
/* The names of the files in it that make an exhibit, in natural order (fig2 before fig10), and
 * of those that cannot be read. The caller frees each name and the list with opc_free. */
int opc_experiments_list(const char *dir, char ***name, int *n, struct opc_err *err);

/* An experiment file that is open, with the sweep of its runs. */
struct opc_experiment {
    char name[128], path[OPC_PATH];
    bool by_path;           /* its command needs the path: a name is not enough to find it */
    const char *out, *tier; /* tier "": neither its file nor that of its runs has tiers */
    struct opc_text given;  /* " KEY=VALUE ...": settings of the command line; empty: none */
    struct opc_sweep *file;
    struct opc_sweep *runs;  /* to be run: of the file, or of the one it names; NULL: nothing */
    struct opc_sweep *other; /* the file that it names for its runs; NULL: its own */
    char runs_dir[OPC_PATH]; /* OUT/runs/NAME */
    const struct opc_analysis *analysis;
};

/* What a command asks for. */
struct opc_experiment_ask {
    const char *dir;  /* of the experiment files */
    const char *name; /* a name in dir, with or without .yaml, or a path, with a slash in it */
    const char *tier;
    const char *out; /* must outlive the experiment */
    int sets;
    char *const *set; /* [sets] "section.name=value": settings of every run */
    bool no_runs;     /* none will be started (struct opc_sweep_ask) */
};
/* Opens it and checks that it can be analysed. Settings are refused (OPC_EUSER) where there are no
 * runs that could have them. */
int opc_experiment_open(const struct opc_experiment_ask *, struct opc_experiment **result,
                        struct opc_err *err);
/* Path of its NAME.json. */
int opc_experiment_exhibit(const struct opc_experiment *, char path[OPC_PATH], struct opc_err *err);
void opc_experiment_close(struct opc_experiment *); /* NULL is fine */

/* How far an experiment has got. */
struct opc_standing {
    int runs, complete;
    int queued; /* runs that a cluster has, waiting or running; set by opc_experiment_make alone */
    int restored; /* complete runs that came from tables just now; set likewise, before it begins */
    bool made;    /* there is an exhibit */
    bool current; /* it is of all runs, newer than each, of this tier and the file as it is now */
    char tier[64];
    int supported, refuted, undecided; /* claims */
};
void opc_experiment_standing(const struct opc_experiment *, struct opc_standing *);

/* How an experiment is made. */
struct opc_experiment_plan {
    /* How runs are started; its `out` is set here, its `threads` are those of drawing, too. */
    struct opc_schedule schedule;
    bool redraw;    /* even if nothing has changed since the exhibit was drawn */
    bool draw_only; /* start no runs: draw those that are complete */
    const struct opc_texts
        *kept; /* directories whose runs are taken over (study/kept.h); or NULL */
    /* Runs what is missing; NULL: opc_schedule_run, without a display. */
    int (*sweep)(const struct opc_sweep *, struct opc_schedule, struct opc_tally *,
                 struct opc_err *err);
    /* Called when work begins, with how far the experiment has got; may be NULL. */
    void (*begin)(void *ctx, const struct opc_experiment *, const struct opc_standing *);
    void (*progress)(void *ctx, double done, const char *what); /* of drawing; may be NULL */
    void *ctx;
};

/* Runs what is missing and draws. If runs failed (OPC_EIO) or were stopped (OPC_ESTOPPED), the
 * complete ones are drawn all the same, and the failure is returned after that. *drawn says whether
 * there is a new exhibit; false without an error: it was up to date, or runs were handed over to a
 * cluster (standing->queued) and it is drawn by a later call. */
int opc_experiment_make(const struct opc_experiment *, const struct opc_experiment_plan *,
                        struct opc_standing *standing, bool *drawn, struct opc_err *err);

/* Makes the exhibit from the runs that are complete. */
int opc_experiment_draw(const struct opc_experiment *, int threads,
                        void (*progress)(void *ctx, double done, const char *what), void *ctx,
                        struct opc_err *err);

#endif
