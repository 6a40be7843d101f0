/* SPDX-License-Identifier: MIT */
/* A task that is a program of its own, in C and without opc: a block slides on a table and is to
 * stop in the middle. docs/env-process.md explains the frames it reads and writes; sliding.py is
 * the same task, to the bit, in Python.
 *
 *     cc -O2 -o sliding sliding.c
 *     opc env check 'exec:./sliding'
 *     opc train sliding.yaml --out run        (in sliding.yaml: env.name: "exec:./sliding")
 *
 *     v' = v + dt (u / m - 0.5 v),    x' = x + dt v'
 *
 * Standard output carries frames and nothing else; what people should read goes to standard error.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO = 1, RESET = 2, STEP = 3, TERMINAL = 4, REWARD = 5, START = 6, STATE = 7, CLOSE = 10 };
enum { REPEATS = 1, CAN_TERMINAL = 2, CAN_REWARD = 4 };
static const double DT = 0.05, EDGE = 2;

static double mass = 1, x, v; /* the task and its state */

/* Reads n bytes; at the end of the input opc has gone, and so do we. */
static void read_bytes(void *to, size_t n)
{
    if (fread(to, 1, n, stdin) != n)
        exit(0);
}

/* A frame is the length of its body, its kind, and its body. The length is little-endian; so are
 * the doubles, and this program assumes that the processor is. */
static void send_frame(unsigned char kind, const void *body, uint32_t length)
{
    fwrite(&length, 4, 1, stdout);
    fwrite(&kind, 1, 1, stdout);
    fwrite(body, 1, length, stdout);
    fflush(stdout);
}

/* Our hello: eight numbers, the ranges of the action, and lines for people. */
static void say_hello(const char *args)
{
    static const char TEXT[] = "name=sliding\n"
                               "summary=a block slides on a table and is to stop in the middle\n"
                               "observation=position, velocity\n"
                               "action=force\n"
                               "reward=-(x^2 + 0.1 v^2 + 0.01 u^2) after the step\n"
                               "termination=when |x| > 2\n"
                               "reset=at rest, x uniform in [-1, 1)\n";
    const double numbers[] = {1,   /* version of the protocol */
                              2,   /* observations */
                              1,   /* actions */
                              2,   /* numbers of the full state */
                              200, /* steps of an episode */
                              DT,  REPEATS + CAN_TERMINAL + CAN_REWARD,
                              0, /* deadline: the usual one */
                              -3,  3};
    unsigned char body[sizeof numbers + sizeof TEXT];
    sscanf(args, "mass=%lf", &mass);
    memcpy(body, numbers, sizeof numbers);
    memcpy(body + sizeof numbers, TEXT, sizeof TEXT - 1);
    send_frame(HELLO, body, (uint32_t)(sizeof numbers + sizeof TEXT - 1));
}

static double reward_of(double force, const double *next)
{
    return -(next[0] * next[0] + 0.1 * next[1] * next[1] + 0.01 * force * force);
}

static void step(double force)
{
    v += DT * (force / mass - 0.5 * v);
    x += DT * v;
    const double next[2] = {x, v};
    /* observation, reward, terminated, truncated */
    send_frame(STEP, (double[]){x, v, reward_of(force, next), fabs(x) > EDGE, 0}, 5 * 8);
}

/* n imagined transitions; each row is s (2 numbers), a (1) and s' (2). */
static void answer_batch(unsigned char kind, const double *body)
{
    const int n = (int)body[0];
    double *out = malloc(8 * (size_t)n);
    for (int i = 0; i < n; i++) {
        const double *row = body + 1 + 5 * i, *next = row + 3;
        out[i] = kind == TERMINAL ? fabs(next[0]) > EDGE : reward_of(row[2], next);
    }
    send_frame(kind, out, 8 * (uint32_t)n);
    free(out);
}

int main(void)
{
    for (;;) {
        uint32_t length;
        unsigned char kind;
        read_bytes(&length, 4);
        read_bytes(&kind, 1);
        double *body = calloc(length / 8 + 2, 8); /* with a NUL after it */
        read_bytes(body, length);
        switch (kind) {
        case HELLO: say_hello((const char *)(body + 1)); break;
        case RESET: /* four random words below 2^32 */
            x = body[0] / 2147483648.0 - 1;
            v = 0;
            send_frame(RESET, (double[]){x, v}, 2 * 8);
            break;
        case START:
            x = body[0];
            v = body[1];
            send_frame(START, (double[]){x, v}, 2 * 8);
            break;
        case STATE: send_frame(STATE, (double[]){x, v}, 2 * 8); break;
        case STEP: step(body[0]); break;
        case TERMINAL:
        case REWARD: answer_batch(kind, body); break;
        case CLOSE: return 0;
        default: fprintf(stderr, "sliding: a frame of kind %d is not for us\n", kind); return 1;
        }
        free(body);
    }
}
