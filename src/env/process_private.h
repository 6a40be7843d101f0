/* SPDX-License-Identifier: MIT */
/* env/process_private.h - what process.c (an environment), process_ask.c (questions to its child,
 * and restarts) and process_link.c (frames over the pipes) share. docs/env-process.md specifies the
 * protocol byte by byte. */
#ifndef OPC_ENV_PROCESS_PRIVATE_H
#define OPC_ENV_PROCESS_PRIVATE_H

#include "base/process/affinity.h"
#include "base/process/talk.h"
#include "opc/env.h"

#include <pthread.h>
#include <stdint.h>

/* A frame is the length of its body (4 bytes), its kind (1 byte) and its body. An answer has the
 * kind of its question, or OPC_FRAME_ERROR and a text. */
enum opc_frame {
    OPC_FRAME_HELLO = 1,
    OPC_FRAME_RESET = 2,
    OPC_FRAME_STEP = 3,
    OPC_FRAME_TERMINAL = 4,
    OPC_FRAME_REWARD = 5,
    OPC_FRAME_START = 6,
    OPC_FRAME_STATE = 7,
    OPC_FRAME_REST = 8,
    OPC_FRAME_SCENE = 9,
    OPC_FRAME_CLOSE = 10,
    OPC_FRAME_ERROR = 255,
};

enum {
    OPC_PROCESS_VERSION = 1,
    OPC_FRAME_HEAD = 5,          /* bytes before the body */
    OPC_FRAME_TEXT = 4096,       /* bytes of a text at most: an error, or the lines of a hello */
    OPC_FRAME_SEED_WORDS = 4,    /* 32-bit numbers in a reset */
    OPC_HELLO_NUMBERS = 8,       /* before the ranges of the actions */
    OPC_HELLO_DIMENSION = 65536, /* observations or full state, at most */
    OPC_HELLO_ACTIONS = 4096,    /* actions, at most */
    OPC_SCENE_NUMBERS = 10,      /* of one shape */
    OPC_PAGE_LINE = 300,         /* characters of a sentence of the child's page */
};

/* What a child can do: one number in its hello. */
enum opc_process_flag {
    OPC_CHILD_REPEATS = 1,  /* the same seed and actions give the same numbers */
    OPC_CHILD_TERMINAL = 2, /* may be asked whether imagined states are terminal */
    OPC_CHILD_REWARD = 4,   /* may be asked for the reward of imagined transitions */
    OPC_CHILD_REST = 8,     /* wants to know when an episode is over */
    OPC_CHILD_MACHINE = 16, /* is a machine; implies OPC_CHILD_REST */
    OPC_CHILD_SCENE = 32,   /* may be asked for shapes to draw */
    OPC_CHILD_FLAGS = 63,
};

/* What a child says about its task. The numbers are the first OPC_HELLO_NUMBERS of its hello. */
struct opc_hello {
    int obs, act, state, steps;
    unsigned flags;
    double dt, deadline;
    double *range; /* [2][act] low, then high; from opc_alloc */
    char *text;    /* lines of key=value; from opc_alloc */
};
void opc_hello_free(struct opc_hello *);
/* The value of a line "key=value" of the text, copied to out; `fallback` if there is none. */
char *opc_hello_line(const struct opc_hello *, const char *key, const char *fallback, char *out,
                     size_t size);

/* OPC_EENV unless a later child of the same command says the same about itself as the first. */
int opc_hello_compare(const struct opc_hello *now, const struct opc_hello *then, const char *name,
                      struct opc_err *err);

/* The answer to a scene: centre and width of the picture, then from, to, radius and colour of each
 * shape. Fewer than 4 numbers are an empty scene. */
void opc_scene_read(struct opc_scene *, size_t n, const double *numbers);

/* The child and the pipes to it. */
struct opc_link {
    char **argv;      /* borrowed */
    const char *args; /* goes to the child in our hello; borrowed */
    struct opc_child child;
    struct opc_talk talk;
    enum { OPC_LINK_DOWN, OPC_LINK_STARTED, OPC_LINK_READY } stage;
    double patience;   /* seconds it gets to end by itself after a failure */
    double deadline;   /* seconds for an answer; below 0: none */
    bool own_deadline; /* it comes from the user, and the child's is not taken */
    bool keep_cores;   /* the user wants that the kernel alone chooses the child's core */
    struct opc_affinity affinity;
    /* The last failure was an end or a silence of the child, which another child might not repeat;
     * otherwise the child did something that the protocol does not allow. */
    bool lost;
    /* Bodies of the question and of the answer; both are aligned for doubles, and the 5 bytes
     * before them are the frame's head. */
    unsigned char *question_block, *answer_block;
    double *question, *answer;
    size_t question_capacity, answer_capacity; /* bytes of a body */
};

/* Reads OPC_ENV_DEADLINE and OPC_ENV_AFFINITY. The link is {0} but for argv, args and talk.stop. */
int opc_link_prepare(struct opc_link *, struct opc_err *err);
/* Starts the child and says hello, without waiting for its answer: several start at once. */
int opc_link_start(struct opc_link *, struct opc_err *err);
/* Receives the answer to the hello. For opc_hello_free. */
int opc_link_greet(struct opc_link *, struct opc_hello *out, struct opc_err *err);
/* Makes room for bodies of this many doubles. */
int opc_link_reserve(struct opc_link *, size_t question, size_t answer, struct opc_err *err);
/* Sends link->question[n] as a frame of this kind. seconds: the deadline, below 0 for none.
 * OPC_EENV, or OPC_ESTOPPED; after a failure the link is down. */
int opc_link_send(struct opc_link *, enum opc_frame kind, size_t n, double seconds,
                  struct opc_err *err);
/* The same without a wait; false: it was not sent, and the link is as it was. */
bool opc_link_try_send(struct opc_link *, enum opc_frame kind, size_t n);
/* Receives link->answer, at least min and at most max numbers; *got, which may be NULL, is how
 * many. After a failure the link is down, unless the child itself said that it failed. */
int opc_link_receive(struct opc_link *, enum opc_frame kind, size_t min, size_t max, size_t *got,
                     double seconds, struct opc_err *err);
/* Both. A step is asked on the core of this thread where that is no slower
 * (base/process/affinity.h). */
int opc_link_ask(struct opc_link *, enum opc_frame kind, size_t n, size_t min, size_t max,
                 size_t *got, double seconds, struct opc_err *err);
/* Says goodbye and ends the child, which gets link->patience seconds to end by itself. */
void opc_link_stop(struct opc_link *);
void opc_link_free(struct opc_link *); /* stops it, too */
/* "step", for messages. */
const char *opc_frame_name(enum opc_frame);

/* ---- process_ask.c --------------------------------------------------------------------------- */

/* What changes while the child plays, apart from the environment so that `terminal`, which gets a
 * constant one, may ask. */
struct talks {
    struct opc_link link;
    pthread_mutex_t lock;
    struct opc_err failure; /* of a function that cannot report one; OPC_OK: none */
    /* The episode under way: how it began, and its actions, to repeat it. */
    enum opc_frame began; /* OPC_FRAME_RESET or OPC_FRAME_START; 0: there is none */
    double *origin;       /* [OPC_FRAME_SEED_WORDS] or [state] */
    double *actions;      /* [capacity][act] */
    double *obs;          /* [obs] after the last step */
    int played, capacity, restarts;
    bool ahead; /* the question of the next step has been sent, and its answer not been read */
};

struct process {
    struct opc_env env;
    struct opc_env_type type;
    struct opc_env_page page;
    struct opc_hello hello;
    char **argv;
    char *args;
    struct talks *talks;
    char name[100], engine[100];
    char lines[6][OPC_PAGE_LINE]; /* of the page */
};

/* One question, so that it can be asked again after a restart. */
struct question {
    enum opc_frame kind;
    const double *action;    /* of a step */
    struct opc_outcome *out; /* of a step; only obs for reset and start */
    /* of terminal and reward: n transitions, and where n answers go */
    int n;
    const float *s, *a, *next;
    double *answers;
};
/* Asks, and asks again as long as restarts allow. The lock is held. */
int opc_process_ask(struct process *, const struct question *, struct opc_err *err);
/* rest, state and scene: no numbers in the question, min .. max in the answer, *got of them. The
 * child must be there: it is not started for them. The lock is held. */
int opc_process_ask_plain(struct process *, enum opc_frame kind, size_t min, size_t max,
                          size_t *got, struct opc_err *err);
/* Makes room for questions and answers of the sizes that the hello named. */
int opc_process_reserve(struct process *, struct opc_err *err);

#endif
